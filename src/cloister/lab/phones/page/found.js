// Centres from the reports so far, beside the simulation's true groups.
import { Square, element } from "./drawing.js";

const PAUSE = 1000, PEOPLE = 400;
const find = (id) => document.getElementById(id);
const grouped = (n) => n.toLocaleString("en");
const away = (a, b) => Math.hypot(...a.map((x, j) => x - b[j]));
const words = (row) => row.map((x) => x.toFixed(1)).join(", ");

/** Return a standard normal number, for simulated people only. */
function normal() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

/** Draw a row of one of the groups. */
export function somebody({ groups, spread }, { lower, upper }) {
  const middle = groups[Math.floor(Math.random() * groups.length)];
  return middle.map((x, j) => Math.min(upper[j], Math.max(lower[j], x + spread * normal())));
}

export class Found {
  constructor(shape, facts, bytes) {
    const square = new Square(find("map"), shape), { people, groups } = facts;
    Object.assign(this, { people, groups, bytes, square, shown: null });
    this.truth = square.make("g");
    for (let i = 0; i < PEOPLE; i++) {
      this.truth.append(square.circle(somebody(facts, shape), { class: "people", r: 1.6 }));
    }
    for (const group of groups) this.truth.append(square.circle(group, { class: "true", r: 9 }));
    find("truth").addEventListener("change", () => this.draw(this.centers));
    this.draw([]);
  }

  /** Ask for the centres every second. */
  async watch() {
    for (;;) {
      if (!document.hidden) await this.look();
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }

  async look() {
    try {
      const { reports, centers } = await (await fetch("/demo/found")).json();
      if (reports === this.shown) return;
      this.shown = reports;
      find("progress").max = this.people;
      find("progress").value = reports;
      const few = reports && !centers.length ? " Too few for centres yet: noise hides the groups." : "";
      const said = `${grouped(reports)} of ${grouped(this.people)} reports: ${grouped(reports * this.bytes)} bytes of answers.`;
      find("came").textContent = said + few;
      this.draw(centers);
    } catch {
      find("came").textContent = "The collector does not answer.";
    }
  }

  draw(centers) {
    this.centers = centers;
    const truth = find("truth").checked;
    this.square.mark(...(truth ? [this.truth] : []), ...centers.map((row) => this.square.cross(row)));
    find("centres").tBodies[0].replaceChildren(...this.groups.map((group, i) => this.line(group, i, truth)));
  }

  line(group, i, truth) {
    const near = this.centers.length ? this.centers.reduce((a, b) => (away(a, group) <= away(b, group) ? a : b)) : null;
    const line = element("tr");
    line.append(
      element("th", { scope: "row" }, `${i + 1}`),
      element("td", {}, near ? words(near) : "–"),
      element("td", {}, truth ? words(group) : ""),
      element("td", {}, near && truth ? away(near, group).toFixed(2) : ""),
    );
    return line;
  }
}

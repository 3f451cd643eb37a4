// The visitor's phone on the left, and the server's view of all reports on the right.
import { Phone } from "./phone.js";
import { Square, element } from "./drawing.js";
import { Found } from "./found.js";

const find = (id) => document.getElementById(id);
const json = async (path, options) => (await fetch(path, options)).json();
const grouped = (n) => n.toLocaleString("en");
const hours = (x) => `${(Math.round(x * 10) / 10).toFixed(1)} hours`;
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0"));

/** Return this browser's user number for the plan: random, not secret. */
async function myNumber(plan) {
  const known = localStorage.getItem(plan);
  if (known !== null) return Number(known);
  const { number } = await json("/demo/number", { method: "POST" });
  if (number === null) throw new Error("All user numbers are in use: restart the demonstration.");
  localStorage.setItem(plan, number);
  return number;
}

/** Sliders and a point for one row, which stays in this object. */
class Row {
  constructor(shape) {
    this.values = shape.lower.map((low, j) => low + (shape.upper[j] - low) * [0.6, 0.35][j]);
    this.square = new Square(find("row"), shape);
    this.sliders = shape.columns.map((name, j) => this.slider(name, j, shape.lower[j], shape.upper[j]));
    const svg = find("row");
    const move = (event) => this.set(this.square.rowAt(event));
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      move(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && move(event));
    this.set(this.values);
  }

  slider(name, j, min, max) {
    const label = element("label", { for: `column-${j}` }, `${name[0].toUpperCase()}${name.slice(1)} a day `);
    const output = element("output", { for: `column-${j}` });
    const input = element("input", { id: `column-${j}`, type: "range", min, max, step: 0.1, autocomplete: "off" });
    input.addEventListener("input", () => this.set(this.values.map((x, i) => (i === j ? Number(input.value) : x))));
    label.append(output);
    const both = element("div");
    both.append(label, input);
    document.querySelector(".sliders").append(both);
    return { input, output };
  }

  set(values) {
    this.values = values.map((x) => Math.round(x * 10) / 10);
    this.sliders.forEach(({ input, output }, j) => {
      input.value = this.values[j];
      input.setAttribute("aria-valuetext", hours(this.values[j]));
      output.textContent = hours(this.values[j]);
    });
    this.square.mark(this.square.circle(this.values, { class: "you", r: 8 }));
  }
}

/** Show the client's promise, and below it the plan's statement. */
function promised([first, ...others]) {
  const rest = element("details"), paragraphs = others.map((line) => element("p", {}, line));
  rest.append(element("summary", {}, "The plan's statement"), ...paragraphs);
  find("promise").replaceChildren(element("p", {}, first), rest);
}

/** Show the report, byte by byte. */
function show(bytes, number) {
  const all = hex(bytes), answer = all.slice(18).join(" ");
  const fields = [
    [1, "a report"],
    [9, "the first bytes of the plan's name"],
    [10, `the round: ${bytes[9]}`],
    [18, `your user number, ${grouped(number)}: random, it says nothing about you`],
    [bytes.length, `your answer, ${bytes.length - 18 > 1 ? `${bytes.length - 18} bytes` : "one byte"}: your row, randomised on this phone`],
  ];
  let from = 0;
  find("bytes").replaceChildren();
  find("fields").replaceChildren();
  for (const [until, says] of fields) {
    const text = all.slice(from, until).join(" "), last = until === bytes.length;
    find("bytes").append(element("span", last ? { class: "answer" } : {}, text), " ");
    const line = element("tr");
    line.append(element("th", { scope: "row" }, from + 1 === until ? `${from}` : `${from}–${until - 1}`), element("td", {}, says));
    find("fields").append(line);
    from = until;
  }
  find("report").hidden = false;
  find("this-byte").textContent = `This byte (${answer})`;
}

/** Show what the server reads in one report. */
async function reading(bytes, row) {
  const { cells, side, times } = await json(`/demo/likely?report=${hex(bytes).join("")}`);
  find("read").removeAttribute("hidden");
  read.light(cells, side);
  read.mark(read.circle(row, { class: "you", r: 6 }));
  const share = Math.round((100 * cells.length) / side ** 2);
  find("reading").textContent =
    `Rows in the lit cells, ${share}% of all cells, send this byte ${times.toFixed(1)} times as often as other rows do. ` +
    "That is all it reveals: any row could have sent it. (Only this page knows your point; the server does not.)";
}

async function send(phone, row, number) {
  find("send").disabled = true;
  find("status").textContent = "Sending …";
  try {
    const { bytes, known } = await phone.report(row.values, number);
    show(bytes, number);
    find("status").textContent = known
      ? "The collector already has it: this phone remembers its report and sent the same bytes, whatever your row is now."
      : "Accepted: your report is on the collector's disk. This phone remembers it, so asking again reveals nothing new.";
    find("send").textContent = "Send it again";
    await reading(bytes, row.values);
  } catch (error) {
    find("status").textContent = `Nothing was sent: ${error.message}`;
  }
  find("send").disabled = false;
}

/** Start the crowd: phones in this page's worker, with the same client, and those of the server. */
async function start(facts) {
  find("start").disabled = true;
  const { numbers } = await json("/demo/start", { method: "POST" });
  const worker = new Worker("/page/crowd.js", { type: "module" });
  worker.onmessage = ({ data }) => (find("here").textContent = ` ${grouped(data.sent)} of them came from phones in this page.`);
  worker.postMessage({ numbers, facts });
}

let read;
try {
  const [facts, phone] = await Promise.all([json("/demo/facts"), Phone.open(location.origin)]);
  for (const place of document.querySelectorAll(".phones")) place.textContent = grouped(facts.people);
  promised(phone.promise);
  const row = new Row(phone.shape);
  read = new Square(find("read"), phone.shape);
  const number = await myNumber(phone.plan);
  find("send").addEventListener("click", () => send(phone, row, number));
  find("start").addEventListener("click", () => start(facts));
  find("send").disabled = find("start").disabled = false;
  new Found(phone.shape, facts, phone.bytes).watch();
} catch (error) {
  find("alarm").textContent = error.message;
  find("alarm").hidden = false;
}

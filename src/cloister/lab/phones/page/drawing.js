// SVG plot of the plan's bounds: axes, cells, points.

const SPACE = "http://www.w3.org/2000/svg";
const LEFT = 40, TOP = 8, SIDE = 310;

/** Return an element with attributes and text, in HTML or the given namespace. */
export function element(name, attributes = {}, text = "", space = null) {
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** Plot of two `columns` with bounds `lower` and `upper`. */
export class Square {
  constructor(svg, { lower, upper, columns }) {
    Object.assign(this, { svg, lower, upper });
    this.cells = this.layer("g");
    const lines = this.layer("g", { class: "lines", "aria-hidden": "true" });
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const [x, y] = this.place([0, 1].map((j) => lower[j] + part * (upper[j] - lower[j])));
      lines.append(
        this.make("line", { x1: x, x2: x, y1: TOP, y2: TOP + SIDE }),
        this.make("line", { y1: y, y2: y, x1: LEFT, x2: LEFT + SIDE }),
        this.make("text", { x, y: TOP + SIDE + 16, "text-anchor": "middle", stroke: "none" }, label(lower[0] + part * (upper[0] - lower[0]))),
        this.make("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end", stroke: "none" }, label(lower[1] + part * (upper[1] - lower[1]))),
      );
    }
    lines.append(
      this.make("text", { x: LEFT + SIDE / 2, y: TOP + SIDE + 34, "text-anchor": "middle", stroke: "none" }, `${columns[0]}, hours`),
      this.make("text", { x: 12, y: TOP + SIDE / 2, "text-anchor": "middle", stroke: "none", transform: `rotate(-90 12 ${TOP + SIDE / 2})` }, `${columns[1]}, hours`),
    );
    this.layer("rect", { class: "field", x: LEFT, y: TOP, width: SIDE, height: SIDE });
    this.marks = this.layer("g");
  }

  make(name, attributes = {}, text = "") {
    return element(name, attributes, text, SPACE);
  }

  layer(name, attributes) {
    const made = this.make(name, attributes);
    this.svg.append(made);
    return made;
  }

  /** Return a row's place in the plot. */
  place([x, y]) {
    const part = (value, j) => (value - this.lower[j]) / (this.upper[j] - this.lower[j]);
    return [LEFT + SIDE * part(x, 0), TOP + SIDE * (1 - part(y, 1))];
  }

  /** Return the row at a pointer event. */
  rowAt(event) {
    const there = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const within = (part) => Math.min(1, Math.max(0, part));
    const parts = [within((there.x - LEFT) / SIDE), within(1 - (there.y - TOP) / SIDE)];
    return parts.map((part, j) => this.lower[j] + part * (this.upper[j] - this.lower[j]));
  }

  circle(row, attributes) {
    const [cx, cy] = this.place(row);
    return this.make("circle", { cx, cy, ...attributes });
  }

  cross(row) {
    const [x, y] = this.place(row);
    return this.make("path", { class: "found", d: `M${x - 8} ${y}h16M${x} ${y - 8}v16` });
  }

  /** Highlight cells of a `side` by `side` grid: pairs of steps along the columns. */
  light(cells, side) {
    const size = SIDE / side;
    const path = cells.map(([i, j]) => `M${LEFT + i * size} ${TOP + SIDE - (j + 1) * size}h${size}v${size}h${-size}z`);
    this.cells.replaceChildren(this.make("path", { class: "lit", d: path.join("") }));
  }

  mark(...marks) {
    this.marks.replaceChildren(...marks);
  }
}

function label(value) {
  return String(Math.round(value * 100) / 100);
}

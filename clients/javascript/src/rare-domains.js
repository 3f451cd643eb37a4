/** Domains that few plans have: other ones, of columns that were shifted, scaled, graded or left out. */
import { need, numbers, whole } from "./check.js";
import { clip, DOMAINS, snap } from "./rows.js";

/** Which of 2^15 steps of a number's magnitude, the first bits of its mantissa, and its sign. */
function grade(x) {
  const bits = new BigInt64Array(new Float64Array([Math.abs(x)]).buffer)[0] >> 44n;
  const size = clip(Number(bits) - (1023 - 64) * 256, 0, 32767);
  return x < 0 ? -1 - size : size;
}

Object.assign(DOMAINS, {
  reframed: {
    check({ offset, scale, then }, d, inner) {
      numbers(offset, d, "offset");
      need(
        numbers(scale, d, "scale").every((x) => x !== 0),
        "scale",
      );
      inner(then);
    },
    snap: ({ offset, scale, then }, row) =>
      snap(
        then,
        row.map((x, j) => (x - offset[j]) / scale[j]),
      ),
  },
  graded: {
    check({ columns, others }, d, inner) {
      columns.forEach((j) => whole(j, 0, d - 1, "columns"));
      inner(others);
    },
    snap({ columns, others }, row) {
      const points = snap(others, row);
      for (const j of columns) points[j] = grade(row[j]);
      return points;
    },
  },
  without: {
    check({ beside, first }, d, inner, depth) {
      whole(depth, 1, 1, "without");
      inner(first, d - whole(beside, 1, d - 1, "beside"));
    },
    snap: ({ beside, first }, row) => snap(first, row.slice(0, -beside)),
  },
});

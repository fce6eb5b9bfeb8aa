/** The document of a result, as the service computes it: sections with a picture, columns, rows and marks. */

/** What will show figures of which there are none yet; other kinds show points. */
const EMPTY = {
  shares: "bars",
  items: "bars",
  found: "bars",
  table: "matrix",
  distribution: "histogram",
  ranges: "histogram",
  rectangles: "map",
  series: "lines",
};

/** A document with the rows of its table, and its sections by id. */
export function read(document) {
  const main = document.sections.filter(({ further }) => !further);
  return {
    ...document,
    main,
    rows: main.flatMap(({ rows }) => rows),
    /** What shows the table: "bars", "points", "histogram", "map", "matrix" or "lines". */
    picture: main.at(-1)?.picture ?? EMPTY[document.kind] ?? "points",
    /** The marks of rows: which quantile, or which other figure, a row is. */
    marked: new Map(document.sections.flatMap(({ rows, marks = [] }) => marks.map((mark) => [rows[mark.row], mark]))),
    section: (id) => document.sections.find((one) => one.id === id) ?? null,
  };
}

/** The rows of a section that are marked with one of these quantiles. */
export function quantiles({ marks = [], rows }, wanted) {
  return wanted.map((quantile) => rows.indexOf(rows[marks.find((mark) => mark.quantile === quantile)?.row]));
}

/** The consistent form of a row, if it has one. */
export function consistent(row) {
  if (!("consistent" in row)) return row;
  return { ...row, value: row.consistent, low: row.consistent_low, high: row.consistent_high };
}

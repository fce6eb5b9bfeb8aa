/** Numbers as people type them, in the language of the page. A browser's own number field drops a comma without a word. */

const [DIGITS, SIGN] = [String.raw`\d+`, "[+−-]?"];

/** The number that a text is, NaN where it is none or could be read in two ways, and undefined where nothing was typed. */
export function readNumber(text, separator = ".") {
  const written = text.trim();
  if (written === "") return undefined;
  const mark = separator === "." ? String.raw`\.` : separator;
  if (!new RegExp(`^${SIGN}(${DIGITS}(${mark}\\d*)?|${mark}${DIGITS})$`).test(written)) return NaN;
  return Number(written.replace("−", "-").replace(separator, "."));
}

/** A number as it is typed. */
export const writeNumber = (number, separator = ".") => String(number).replace(".", separator);

/** Numbers as people type them, in the language of the page. A browser's own number field drops a comma without a word. */

const ARABIC = /[\u0660-\u0669\u06f0-\u06f9]/g; // the digits of Arabic and of Persian keyboards
const [DIGITS, SIGN] = [String.raw`\d+`, "[+−-]?"];

/** The number that a text is, NaN where it is none or could be read in two ways, and undefined where nothing was typed. */
export function readNumber(text, separator = ".") {
  const written = text.trim().replace(ARABIC, (digit) => digit.charCodeAt(0) & 15).replace("\u066b", separator);
  if (written === "") return undefined;
  const mark = separator === "." ? String.raw`\.` : separator;
  if (!new RegExp(`^${SIGN}(${DIGITS}(${mark}\\d*)?|${mark}${DIGITS})$`).test(written)) return NaN;
  return Number(written.replace("−", "-").replace(separator, "."));
}

/** A number as it is typed. */
export const writeNumber = (number, separator = ".") => String(number).replace(".", separator);

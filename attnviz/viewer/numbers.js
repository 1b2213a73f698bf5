// Numbers as text, exactly as attnviz/figures/numbers.py writes them: ties go to the even digit, and are found on the exact value.

const ROUNDING = 1e-6; // a sum of float32 weights that is less than 1 by no more than this is all of them

// To three digits, as `number_text`: "0.475", "1.47", "4.5 × 10⁻⁴".
export function numberText(number) {
  if (!Number.isFinite(number)) return "none";
  const size = Math.abs(number);
  const { digits, place } = digitsOf(size, 3);
  if (size === 0 || place < -3 || place > 5) return powerText(number);
  const text = place < 3 ? pointed(digits, place) : grouped(fixedText(size, 0));
  return signed(number, text);
}

// A share for a sentence, as `share_text`: "47.5%", "under 0.1%".
export function shareText(share) {
  return percentOf(share, 1);
}

// A share in whole percent, as `percent_text`: "83%", "over 99%".
export function percentText(share) {
  return percentOf(share, 0);
}

// A sum or one of its terms to two decimals, as `sum_text`: "−4.13".
export function sumText(number) {
  if (!(Math.abs(number) < 1e6)) return powerText(number);
  const text = fixedText(Math.abs(number), 2);
  return Number(text) === 0 ? text : signed(number, text);
}

// To two digits in powers of ten, as `power_text`: "9.2 × 10⁻⁷"; from 0.01 to 999 without a power.
export function powerText(number) {
  if (Number.isNaN(number)) return "not a number";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size === Infinity) return signed(number, "∞");
  const { digits, place } = digitsOf(size, 2);
  if (place >= -2 && size < 999.5) return signed(number, size >= 99.5 ? fixedText(size, 0) : trimmed(pointed(digits, place)));
  const raised = Array.from(String(place), (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])).join("");
  return signed(number, `${digits === "10" ? "" : `${pointed(digits, 0)}\u00a0×\u00a0`}10${raised}`);
}

function percentOf(share, nDecimal) {
  if (!Number.isFinite(share)) return powerText(share);
  const least = nDecimal ? 0.1 : 1;
  let text = fixedText(100 * Math.abs(share), nDecimal);
  let beside = "";
  if (share !== 0 && Number(text) === 0) {
    [text, beside] = [String(least), share > 0 ? "under " : "over "];
  } else if (Number(text) === 100 && Math.abs(share) < 1 - ROUNDING) {
    [text, beside] = [String(100 - least), share > 0 ? "over " : "under "];
  }
  return `${beside}${signed(share, grouped(text))}%`;
}

function signed(number, text) {
  return number < 0 ? `−${text}` : text;
}

// A size with so many decimals. `toFixed` rounds a tie up; of halves of a decimal only odd multiples of 2^-(n + 1) are ties.
function fixedText(size, nDecimal) {
  if (size >= 2 ** 53) return `${BigInt(size)}${nDecimal ? `.${"0".repeat(nDecimal)}` : ""}`;
  const isTie = (size * 2 ** (nDecimal + 1)) % 2 === 1;
  const text = size.toFixed(nDecimal);
  if (!isTie || Number(text.at(-1)) % 2 === 0) return text;
  return (Number(text) - 10 ** -nDecimal).toFixed(nDecimal); // of the two next to a tie, toFixed has the larger one
}

// The first digits of a size and the place of the first one, 0 for units: 0.0475 is "475" at −2.
function digitsOf(size, nDigit) {
  let [mantissa, place] = size.toExponential(nDigit - 1).split("e");
  const [longer] = size.toExponential(nDigit).split("e");
  if (longer.endsWith("5")) {
    const [whole, exponent] = size.toExponential(60).split("e"); // long enough to be exact where it is a tie
    const digits = whole.replace(".", "");
    if (/^50*$/.test(digits.slice(nDigit)) && Number(digits[nDigit - 1]) % 2 === 0) {
      return { digits: digits.slice(0, nDigit), place: Number(exponent) };
    }
  }
  return { digits: mantissa.replace(".", ""), place: Number(place) };
}

// Digits with their point, and zeros before it for small ones.
function pointed(digits, place) {
  if (place < 0) return `0.${"0".repeat(-place - 1)}${digits}`;
  if (place >= digits.length - 1) return digits + "0".repeat(place + 1 - digits.length);
  return `${digits.slice(0, place + 1)}.${digits.slice(place + 1)}`;
}

function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// With commas between thousands.
function grouped(text) {
  return text.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
}

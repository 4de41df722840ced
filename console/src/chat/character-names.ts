// The characters that have a name in Markdown, such as `&copy;`: those of HTML 4. Stands in for
// `decode-named-character-reference`, which in browsers asks `innerHTML`; our policy refuses that.
// A name that is not here stays as it was written.

/** From U+00A0 on, in order. */
const LATIN =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro " +
  "para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil " +
  "Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave " +
  "Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml " +
  "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute " +
  "thorn yuml";
/** From U+0391 and from U+03B1 on; the first has no final sigma. */
const GREEK =
  "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi " +
  "Psi Omega";
/** Each name with its character. */
const OTHERS =
  "quot\" amp& lt< gt> apos' OElig\u0152 oelig\u0153 Scaron\u0160 scaron\u0161 Yuml\u0178 fnof\u0192 circ\u02c6 " +
  "tilde\u02dc sigmaf\u03c2 ensp\u2002 emsp\u2003 thinsp\u2009 zwnj\u200c zwj\u200d lrm\u200e rlm\u200f ndash\u2013 " +
  "mdash\u2014 lsquo\u2018 rsquo\u2019 sbquo\u201a ldquo\u201c rdquo\u201d bdquo\u201e dagger\u2020 Dagger\u2021 " +
  "bull\u2022 hellip\u2026 permil\u2030 prime\u2032 Prime\u2033 lsaquo\u2039 rsaquo\u203a oline\u203e frasl\u2044 " +
  "euro\u20ac image\u2111 weierp\u2118 real\u211c trade\u2122 alefsym\u2135 larr\u2190 uarr\u2191 rarr\u2192 " +
  "darr\u2193 harr\u2194 crarr\u21b5 lArr\u21d0 uArr\u21d1 rArr\u21d2 dArr\u21d3 hArr\u21d4 forall\u2200 part\u2202 " +
  "exist\u2203 empty\u2205 nabla\u2207 isin\u2208 notin\u2209 ni\u220b prod\u220f sum\u2211 minus\u2212 lowast\u2217 " +
  "radic\u221a prop\u221d infin\u221e ang\u2220 and\u2227 or\u2228 cap\u2229 cup\u222a int\u222b there4\u2234 " +
  "sim\u223c cong\u2245 asymp\u2248 ne\u2260 equiv\u2261 le\u2264 ge\u2265 sub\u2282 sup\u2283 nsub\u2284 sube\u2286 " +
  "supe\u2287 oplus\u2295 otimes\u2297 perp\u22a5 sdot\u22c5 lceil\u2308 rceil\u2309 lfloor\u230a rfloor\u230b " +
  "lang\u27e8 rang\u27e9 loz\u25ca spades\u2660 clubs\u2663 hearts\u2665 diams\u2666";

const inOrder = (names: string, from: number) =>
  names.split(" ").map((name, index) => [name, String.fromCharCode(from + index)] as const);

const CHARACTERS = new Map<string, string>([
  ...inOrder(LATIN, 0xa0),
  ...inOrder(GREEK, 0x391),
  ...inOrder(GREEK.toLowerCase(), 0x3b1),
  // Split at plain blanks only: some of the characters are blanks themselves.
  ...OTHERS.split(" ").map((pair) => [pair.slice(0, -1), pair.slice(-1)] as const),
]);

export function decodeNamedCharacterReference(name: string): string | false {
  return CHARACTERS.get(name) ?? false;
}

// JSON with colours. Own and small: highlighters inject styles, which our policy refuses.
import { type ReactNode, createContext, useContext, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { bytes, textBytes } from "./format";

/** Colouring more than this costs more than it helps. */
const MAX_COLOURED = 100_000;
const MAX_SHOWN = 20_000;
/** A text that is longer is laid out in pieces of about this size, and only those in sight. */
const PIECE = 16_000;

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

/** The pieces of JSON text, as React nodes. */
export function highlight(json: string): ReactNode[] {
  const nodes: ReactNode[] = [];
  let last = 0;
  for (const match of json.matchAll(TOKEN)) {
    const [whole, string, colon, number] = match;
    nodes.push(json.slice(last, match.index));
    const kind = string ? (colon ? "json-key" : "json-string") : number ? "json-number" : "json-word";
    nodes.push(
      <span key={match.index} className={kind}>
        {string && colon ? string : whole}
      </span>,
      string && colon ? colon : "",
    );
    last = match.index + whole.length;
  }
  nodes.push(json.slice(last));
  return nodes;
}

/** Within it texts are shown whole at once: somebody asked for all of it. */
export const WholeText = createContext(false);

/** The text in pieces that end at line ends, where there are any. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const far = at + PIECE;
    const end = far >= text.length ? text.length : text.lastIndexOf("\n", far) + 1;
    const next = end > at ? end : far;
    pieces.push(text.slice(at, next));
    at = next;
  }
  return pieces;
}

/** A long text without colours: laying it out at once would hold up the page. */
function Pieces({ text }: { text: string }) {
  const pieces = useMemo(() => piecesOf(text), [text]);
  return pieces.map((piece, index) => (
    // Pieces are told apart by their place.
    <span key={index} className="text-piece">
      {piece}
    </span>
  ));
}

/** Text with a bounded height; the rest is one click away, and its size is told before. */
export function LongText({
  text,
  coloured = false,
  label,
  tall = false,
}: {
  text: string;
  coloured?: boolean;
  label?: string;
  tall?: boolean;
}) {
  const { t } = useTranslation();
  const [all, setAll] = useState(useContext(WholeText));
  const cut = !all && text.length > MAX_SHOWN;
  const shown = cut ? text.slice(0, MAX_SHOWN) : text;
  const nodes = useMemo(() => {
    if (coloured && shown.length <= MAX_COLOURED) return highlight(shown);
    return shown.length > 2 * PIECE ? <Pieces text={shown} /> : shown;
  }, [shown, coloured]);
  return (
    <div>
      {/* It scrolls, hence the keyboard must get at it. */}
      <pre className={`code-block ${tall ? "max-h-[70dvh]" : "max-h-80"}`} tabIndex={0} aria-label={label}>
        {nodes}
        {cut && "…"}
      </pre>
      {cut && (
        <button type="button" className="btn btn-small mt-2" onClick={() => setAll(true)}>
          {t("common.showAll", { size: bytes(textBytes(text)) })}
        </button>
      )}
    </div>
  );
}

export function JsonView({ value, label }: { value: unknown; label?: string }) {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "", [value]);
  return <LongText text={text} coloured {...(label ? { label } : {})} />;
}

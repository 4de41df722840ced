// A message of the daemon, which begins in lower case to stand within others, shown as a sentence.
// Only its look changes: the text stays as it is, to be searched, copied and compared.
import { isSentence } from "./format";

export function Sentence({ text, className = "" }: { text: string; className?: string }) {
  return <p className={`${isSentence(text) ? "first-letter:uppercase" : ""} ${className}`}>{text}</p>;
}

// A model's text. HTML in it stays text, images become links (nothing is loaded from elsewhere),
// links open beside the console.
import { type ReactNode, memo, useDeferredValue, useMemo } from "react";
import { useTranslation } from "react-i18next";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CopyButton } from "../ui/copy-button";

const PLUGINS = [remarkGfm];

type Element = { children?: { type: string; value?: string; children?: unknown[] }[] };

/** The text of a syntax tree's part. */
function textOf(node: unknown): string {
  const { value, children } = (node ?? {}) as { value?: string; children?: unknown[] };
  return value ?? (children ?? []).map(textOf).join("");
}

/** Headings of a text stand below the message's own, whatever level the model chose. */
const heading = ({ children }: { children?: ReactNode }) => <h3>{children}</h3>;

function SafeLink({ href, children }: { href?: string | undefined; children?: ReactNode }) {
  if (!href) return <>{children}</>;
  if (href.startsWith("#")) return <a href={href}>{children}</a>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function CodeBlock({ text, children }: { text: string; children?: ReactNode }) {
  return (
    <div className="group/code relative">
      {/* It scrolls, hence the keyboard must get at it. */}
      <pre tabIndex={0}>{children}</pre>
      <CopyButton text={text} iconOnly className="absolute top-1 right-1 bg-surface/80" />
    </div>
  );
}

function TaskBox({ checked }: { checked?: boolean | undefined }) {
  const { t } = useTranslation();
  return (
    <input
      type="checkbox"
      className="check mr-1.5"
      disabled
      checked={checked ?? false}
      aria-label={t(checked ? "chat.taskDone" : "chat.taskOpen")}
    />
  );
}

const COMPONENTS: Components = {
  h1: heading,
  h2: heading,
  h3: heading,
  h4: heading,
  h5: heading,
  h6: heading,
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  img: ({ src, alt }) => <SafeLink href={typeof src === "string" ? src : undefined}>{alt || src}</SafeLink>,
  pre: ({ node, children }) => <CodeBlock text={textOf(node as Element)}>{children}</CodeBlock>,
  table: ({ children }) => (
    <div className="overflow-x-auto" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <TaskBox checked={checked} />,
};

/** While text streams in, drawing it gives way to whatever the person does. */
export function Markdown({ text, id }: { text: string; id: string }) {
  return <Drawn text={useDeferredValue(text)} id={id} />;
}

const Drawn = memo(function Drawn({ text, id }: { text: string; id: string }) {
  // Footnotes of two messages must not have the same address.
  const options = useMemo(() => ({ clobberPrefix: `m-${id}-` }), [id]);
  return (
    <div className="prose-chat">
      <ReactMarkdown remarkPlugins={PLUGINS} remarkRehypeOptions={options} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </div>
  );
});

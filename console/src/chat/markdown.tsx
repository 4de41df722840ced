// A model's text, from Markdown straight to elements: there is no HTML on the way. HTML in the
// text stays text, images become links (nothing is loaded from elsewhere), links open beside the
// console.
import type { Definition, ListItem, Nodes, Table } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { type ReactNode, memo, useDeferredValue, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { CopyButton } from "../ui/copy-button";

const GFM = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] };
/** A text with more levels than this is no text; what is below is left out. */
const MAX_DEPTH = 60;

/** Longer texts, and lines that open quotes or lists without end, are not worth the time they take. */
const MAX_TEXT = 300_000;
const ENDLESS = /^[>\s*+-]{300}/m;

/** While text streams in, drawing it gives way to whatever the person does. */
export function Markdown({ text }: { text: string }) {
  return <Drawn text={useDeferredValue(text)} />;
}

const Drawn = memo(function Drawn({ text }: { text: string }) {
  const content = useMemo(() => {
    if (text.length > MAX_TEXT || ENDLESS.test(text)) return <p className="whitespace-pre-wrap">{text}</p>;
    const tree = fromMarkdown(text, GFM);
    const definitions = new Map<string, Definition>();
    collect(tree, definitions);
    return drawAll(tree.children, definitions, 0);
  }, [text]);
  return <div className="prose-chat">{content}</div>;
});

type Definitions = ReadonlyMap<string, Definition>;

/** Where links that are given by name lead to. */
function collect(node: Nodes, definitions: Map<string, Definition>, depth = 0): void {
  if (node.type === "definition") definitions.set(node.identifier, node);
  if ("children" in node && depth < MAX_DEPTH)
    for (const child of node.children) collect(child, definitions, depth + 1);
}

const drawAll = (nodes: readonly Nodes[], definitions: Definitions, depth: number): ReactNode[] =>
  // Parts of a text are told apart by their place.
  nodes.map((node, index) => <Part key={index} node={node} definitions={definitions} depth={depth} />);

type PartProps = { node: Nodes; definitions: Definitions; depth: number };

function Part({ node, definitions, depth }: PartProps): ReactNode {
  const inside = "children" in node && depth < MAX_DEPTH ? drawAll(node.children, definitions, depth + 1) : null;
  switch (node.type) {
    case "text":
    case "html":
      return node.value;
    case "paragraph":
      return <p>{inside}</p>;
    // Headings of a text stand below the message's own, whatever level the model chose.
    case "heading":
      return <h3>{inside}</h3>;
    case "strong":
      return <strong>{inside}</strong>;
    case "emphasis":
      return <em>{inside}</em>;
    case "delete":
      return <del>{inside}</del>;
    case "inlineCode":
      return <code>{node.value}</code>;
    case "code":
      return <CodeBlock text={node.value} />;
    case "break":
      return <br />;
    case "thematicBreak":
      return <hr />;
    case "blockquote":
      return <blockquote>{inside}</blockquote>;
    case "list":
      return node.ordered ? <ol start={node.start ?? 1}>{inside}</ol> : <ul>{inside}</ul>;
    case "listItem":
      return <Item item={node} definitions={definitions} depth={depth} />;
    case "table":
      return <TableView table={node} definitions={definitions} depth={depth} />;
    case "link":
      return <SafeLink url={node.url}>{inside}</SafeLink>;
    case "linkReference":
      return <SafeLink url={definitions.get(node.identifier)?.url}>{inside}</SafeLink>;
    case "image":
      return <SafeLink url={node.url}>{node.alt || node.url}</SafeLink>;
    case "imageReference":
      return <SafeLink url={definitions.get(node.identifier)?.url}>{node.alt}</SafeLink>;
    case "footnoteReference":
      return <sup>[{node.label ?? node.identifier}]</sup>;
    case "footnoteDefinition":
      return (
        <div className="text-sm text-soft">
          [{node.label ?? node.identifier}] {inside}
        </div>
      );
    default:
      return null;
  }
}

/** The address, where it is one that a browser may be sent to. */
export function safeUrl(url: string | undefined): string | null {
  const target = URL.parse(url ?? "");
  return target && ["http:", "https:", "mailto:"].includes(target.protocol) ? target.href : null;
}

function SafeLink({ url, children }: { url: string | undefined; children: ReactNode }) {
  const href = safeUrl(url);
  if (!href) return children;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function CodeBlock({ text }: { text: string }) {
  return (
    <div className="relative">
      {/* It scrolls, hence the keyboard must get at it. */}
      <pre tabIndex={0} className="pointer-coarse:min-h-13">
        <code>{text}</code>
      </pre>
      <CopyButton text={text} iconOnly className="absolute top-1 right-1 bg-surface/80" />
    </div>
  );
}

type ItemProps = { item: ListItem; definitions: Definitions; depth: number };

/** The words of a short point stand beside its mark, without a paragraph's space around them. */
function Item({ item, definitions, depth }: ItemProps) {
  const loose = item.spread ?? false;
  const parts = item.children.flatMap((child): Nodes[] =>
    !loose && child.type === "paragraph" ? child.children : [child],
  );
  const content = depth < MAX_DEPTH ? drawAll(parts, definitions, depth + 1) : null;
  if (item.checked == null) return <li>{content}</li>;
  return (
    <li className="task">
      <TaskBox checked={item.checked} />
      {content}
    </li>
  );
}

function TaskBox({ checked }: { checked: boolean }) {
  const { t } = useTranslation();
  return (
    <input
      type="checkbox"
      className="check mr-1.5"
      disabled
      checked={checked}
      aria-label={t(checked ? "chat.taskDone" : "chat.taskOpen")}
    />
  );
}

type TableProps = { table: Table; definitions: Definitions; depth: number };

function TableView({ table, definitions, depth }: TableProps) {
  const [head, ...body] = table.children;
  const side = (column: number) => ({ textAlign: table.align?.[column] ?? undefined });
  return (
    // It scrolls, hence the keyboard must get at it.
    <div className="overflow-x-auto" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, column) => (
              <th key={column} scope="col" style={side(column)}>
                {drawAll(cell.children, definitions, depth + 1)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, index) => (
            <tr key={index}>
              {row.children.map((cell, column) => (
                <td key={column} style={side(column)}>
                  {drawAll(cell.children, definitions, depth + 1)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

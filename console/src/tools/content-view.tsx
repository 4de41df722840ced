// The blocks of a tool's result, a prompt's message or a resource: text, image, resource, binary.
import { Download, FileText } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { ContentBlock, ResourceContents } from "../api/mcp";
import { download, fromBase64 } from "../ui/download";
import { base64Bytes, bytes } from "../ui/format";
import { JsonView, LongText } from "../ui/json-view";

/** An image that is larger is offered as a file. */
const MAX_IMAGE_BYTES = 8_000_000;
const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/i;

export function ContentView({ block, name }: { block: ContentBlock; name: string }) {
  const { t } = useTranslation();
  switch (block.type) {
    case "text":
      return <TextView text={block.text} />;
    case "image":
      return <ImageView data={block.data} type={block.mimeType} name={name} />;
    case "audio":
      return <BinaryView data={block.data} type={block.mimeType} name={name} />;
    case "resource":
      return (
        <div className="space-y-1">
          <p className="flex items-center gap-1.5 text-sm text-soft">
            <FileText size={14} aria-hidden />
            <code>{block.resource?.uri}</code>
          </p>
          {block.resource && <ResourceView contents={block.resource} />}
        </div>
      );
    case "resource_link":
      return (
        <p className="flex items-center gap-1.5">
          <FileText size={14} className="text-soft" aria-hidden />
          <span className="sr-only">{t("run.resourceLink")}</span>
          {block.title ?? block.name} <code className="text-soft">{block.uri}</code>
        </p>
      );
    default:
      return <JsonView value={block} />;
  }
}

export function ResourceView({ contents }: { contents: ResourceContents }) {
  const { t } = useTranslation();
  const name = contents.uri.split("/").at(-1) || contents.uri;
  if (contents.blob !== undefined)
    return <ImageView data={contents.blob} type={contents.mimeType ?? "application/octet-stream"} name={name} />;
  if (!contents.text) return <p className="text-soft">{t("resources.empty")}</p>;
  return <TextView text={contents.text} tall />;
}

/** Text that is JSON is shown as JSON. */
export function TextView({ text, tall = false }: { text: string; tall?: boolean }) {
  const pretty = useMemo(() => prettyJson(text), [text]);
  return <LongText text={pretty ?? text} coloured={pretty !== null} tall={tall} />;
}

function prettyJson(text: string): string | null {
  if (!/^\s*[{[]/.test(text) || text.length > 500_000) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function ImageView({ data, type, name }: { data: string; type: string; name: string }) {
  const { t } = useTranslation();
  const size = base64Bytes(data);
  if (!IMAGES.test(type)) return <BinaryView data={data} type={type} name={name} />;
  if (size > MAX_IMAGE_BYTES) {
    return (
      <>
        <p className="mb-2 text-soft">{t("run.imageTooLarge", { size: bytes(size) })}</p>
        <BinaryView data={data} type={type} name={name} />
      </>
    );
  }
  return (
    <img
      src={`data:${type};base64,${data}`}
      alt={t("run.image", { tool: name })}
      className="max-h-96 max-w-full rounded-lg border border-line bg-sunken"
    />
  );
}

function BinaryView({ data, type, name }: { data: string; type: string; name: string }) {
  const { t } = useTranslation();
  return (
    <p className="flex flex-wrap items-center gap-3">
      <span>{t("run.binary", { type, size: bytes(base64Bytes(data)) })}</span>
      <button type="button" className="btn btn-small" onClick={() => download(name, fromBase64(data), type)}>
        <Download size={14} aria-hidden />
        {t("common.download")}
      </button>
    </p>
  );
}

// One tool: its name, what it says of itself, its schema on request.
import { Braces, Play } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Tool } from "../api/mcp";
import { JsonView } from "../ui/json-view";

/** Schemas that are open stay open when the list is scrolled and the item is made anew. */
const open = new Set<string>();

export function ToolItem({ tool, onRun }: { tool: Tool; onRun: () => void }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(open.has(tool.name));
  const region = useId();
  const title = tool.title ?? tool.annotations?.title;
  const toggle = () => {
    if (shown) open.delete(tool.name);
    else open.add(tool.name);
    setShown(!shown);
  };
  return (
    <div className="px-4 py-3">
      <div className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-72">
          <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <code className="font-semibold">{tool.name}</code>
            {title && title !== tool.name && <span className="text-soft">{title}</span>}
            <Annotations tool={tool} />
          </p>
          <p className="mt-0.5 line-clamp-4 text-sm whitespace-pre-line text-soft">
            {tool.description?.trim() || t("tools.noDescription")}
          </p>
        </div>
        <div className="flex gap-1.5">
          <button
            type="button"
            className="btn btn-small"
            aria-label={t("tools.schemaOf", { tool: tool.name })}
            aria-expanded={shown}
            aria-controls={shown ? region : undefined}
            onClick={toggle}
          >
            <Braces size={14} aria-hidden />
            {t("tools.schema")}
          </button>
          <button
            type="button"
            className="btn btn-small"
            aria-label={t("tools.run", { tool: tool.name })}
            onClick={onRun}
          >
            <Play size={14} aria-hidden />
            {t("tools.runShort")}
          </button>
        </div>
      </div>
      {shown && (
        <section id={region} aria-label={t("tools.schemaRegion", { tool: tool.name })} className="mt-2">
          <JsonView value={tool.inputSchema ?? {}} />
        </section>
      )}
    </div>
  );
}

function Annotations({ tool }: { tool: Tool }) {
  const { t } = useTranslation();
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tool.annotations ?? {};
  return (
    <>
      {readOnlyHint && <span className="tag bg-ok-soft text-ok">{t("tools.readOnly")}</span>}
      {destructiveHint && !readOnlyHint && <span className="tag bg-bad-soft text-bad">{t("tools.destructive")}</span>}
      {idempotentHint && <span className="tag">{t("tools.idempotent")}</span>}
      {openWorldHint && <span className="tag">{t("tools.openWorld")}</span>}
    </>
  );
}

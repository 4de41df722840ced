// What a run gave: its blocks, its structured content, or why it failed.
import { Ban, CircleCheck, CircleX } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Tool, ToolResult } from "../api/mcp";
import { FailureAlert } from "../ui/alert";
import { bytes, milliseconds, textBytes } from "../ui/format";
import { JsonView } from "../ui/json-view";
import { ContentView } from "./content-view";
import type { Run } from "./use-run";
import { firstProblem, validate } from "./validate";

export function RunResult({ tool, run }: { tool: Tool; run: Run }) {
  const { t } = useTranslation();
  const { outcome } = run;
  return (
    <section aria-label={t("run.result")} className="space-y-3 rounded-lg border border-line p-3">
      <ResultHead run={run} />
      {outcome === "cancelled" ? null : "failure" in outcome ? (
        <FailureAlert title={t("run.failed")} failure={outcome.failure} />
      ) : (
        <ResultBody tool={tool} result={outcome.result} />
      )}
    </section>
  );
}

export function outcomeOf({ outcome }: Run): "ok" | "toolError" | "failed" | "cancelled" {
  if (outcome === "cancelled") return "cancelled";
  if ("failure" in outcome) return "failed";
  return outcome.result?.isError ? "toolError" : "ok";
}

export function OutcomeLine({ run }: { run: Run }) {
  const { t } = useTranslation();
  const outcome = outcomeOf(run);
  const Icon = outcome === "ok" ? CircleCheck : outcome === "cancelled" ? Ban : CircleX;
  return (
    <span
      className={`inline-flex items-center gap-1.5 font-medium ${outcome === "ok" ? "text-ok" : outcome === "cancelled" ? "text-soft" : "text-bad"}`}
    >
      <Icon size={15} aria-hidden />
      {t(`run.${outcome}`)}
    </span>
  );
}

function ResultHead({ run }: { run: Run }) {
  const { t } = useTranslation();
  const size =
    typeof run.outcome === "object" && "result" in run.outcome ? textBytes(JSON.stringify(run.outcome.result)) : null;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <h3 className="font-semibold">{t("run.result")}</h3>
      <OutcomeLine run={run} />
      <span className="text-sm text-soft">{t("run.duration", { ms: milliseconds(run.ms) })}</span>
      {size !== null && <span className="text-sm text-soft">{bytes(size)}</span>}
    </div>
  );
}

function ResultBody({ tool, result }: { tool: Tool; result: ToolResult }) {
  const { t } = useTranslation();
  const blocks = Array.isArray(result?.content) ? result.content : [];
  const structured = result?.structuredContent;
  if (blocks.length === 0 && structured === undefined) return <p className="text-soft">{t("run.empty")}</p>;
  return (
    <div className={`space-y-3 ${result.isError ? "border-l-2 border-bad pl-3" : ""}`}>
      {blocks.map((block, index) => (
        // Blocks have no name.
        <ContentView key={index} block={block} name={tool.name} />
      ))}
      {structured !== undefined && <Structured tool={tool} value={structured} checked={!result.isError} />}
    </div>
  );
}

function Structured({ tool, value, checked }: { tool: Tool; value: unknown; checked: boolean }) {
  const { t } = useTranslation();
  const schema = checked ? tool.outputSchema : undefined;
  const problem = useMemo(() => (schema ? firstProblem(validate(schema, value, t)) : null), [schema, value, t]);
  return (
    <div>
      <p className="mb-1 flex flex-wrap items-center gap-2 text-sm font-medium">
        {t("run.structured")}
        {schema && (
          <span className={`tag ${problem ? "bg-bad-soft text-bad" : "bg-ok-soft text-ok"}`}>
            {problem ? t("run.breaksSchema", { reason: problem }) : t("run.matchesSchema")}
          </span>
        )}
      </p>
      <JsonView value={value} />
    </div>
  );
}

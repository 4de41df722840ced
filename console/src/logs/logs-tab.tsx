// The log of a server: where its lines come from, search, follow, copy, download.
import { ArrowDownToLine, Download } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { LogEntry, ServerView } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { download } from "../ui/download";
import { SearchBox } from "../ui/search-box";
import { useUrlState } from "../ui/url-state";
import { MAX_LINES, SOURCES, type Source, filterLines, sourceLabel, sourceOf } from "./log-buffer";
import { LogView } from "./log-view";
import { useLog } from "./use-log";

const asText = (lines: readonly LogEntry[]) =>
  lines.map((entry) => `${entry.at} ${sourceLabel(sourceOf(entry))} ${entry.line}`).join("\n");

export default function LogsTab({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const { lines, missed, failure } = useLog(server.id);
  const [search, setSearch] = useUrlState("q");
  const [hidden, setHidden] = useState<ReadonlySet<Source>>(new Set());
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(true);
  const wanted = useDeferredValue(search);
  const shown = useMemo(() => filterLines(lines, { hidden, search: wanted }), [lines, hidden, wanted]);
  return (
    <div className="space-y-3">
      {failure && <FailureAlert title={t("logs.failed")} failure={failure} />}
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <SearchBox label={t("logs.search")} value={search} onChange={setSearch} className="w-full sm:w-64" />
        <SourceChoice hidden={hidden} onChange={setHidden} />
        <Toggle label={t("logs.follow")} checked={follow} onChange={setFollow} />
        <Toggle label={t("logs.wrap")} checked={wrap} onChange={setWrap} />
        <div className="ml-auto flex gap-1.5">
          <CopyButton text={() => asText(shown)} label={t("logs.copy")} />
          <button type="button" className="btn btn-small" onClick={() => download(`${server.name}.log`, asText(shown))}>
            <Download size={14} aria-hidden />
            {t("logs.download")}
          </button>
        </div>
      </div>
      <div className="relative">
        <LogView
          lines={shown}
          search={wanted}
          follow={follow}
          wrap={wrap}
          onFollow={setFollow}
          empty={t(lines.length === 0 ? "logs.empty" : "logs.noMatch")}
        />
        {!follow && shown.length > 0 && (
          <button
            type="button"
            className="btn btn-small absolute right-4 bottom-3 shadow"
            onClick={() => setFollow(true)}
          >
            <ArrowDownToLine size={14} aria-hidden />
            {t("logs.jump")}
          </button>
        )}
      </div>
      {missed > 0 && <p className="text-sm text-warn">{t("logs.missed", { count: missed })}</p>}
      <p className="text-sm text-soft">
        {t("logs.count", { s: shown.length.toLocaleString(), t: lines.length.toLocaleString() })} ·{" "}
        {t("logs.bound", { n: MAX_LINES.toLocaleString() })}
      </p>
    </div>
  );
}

type ChoiceProps = { hidden: ReadonlySet<Source>; onChange: (hidden: ReadonlySet<Source>) => void };

function SourceChoice({ hidden, onChange }: ChoiceProps) {
  const { t } = useTranslation();
  const show = (source: Source, on: boolean) => {
    const next = new Set(hidden);
    if (on) next.delete(source);
    else next.add(source);
    onChange(next);
  };
  return (
    <fieldset className="flex flex-wrap gap-x-3">
      <legend className="sr-only">{t("logs.streams")}</legend>
      {SOURCES.map((source) => (
        <Toggle
          key={source}
          label={sourceLabel(source)}
          checked={!hidden.has(source)}
          onChange={(on) => show(source, on)}
        />
      ))}
    </fieldset>
  );
}

function Toggle({ label, checked, onChange }: { label: string; checked: boolean; onChange: (on: boolean) => void }) {
  return (
    <label className="flex items-center gap-1.5 whitespace-nowrap">
      <input
        type="checkbox"
        className="check mt-0"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
      />
      {label}
    </label>
  );
}

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
import { type LogFilter, MAX_LINES, filterLines } from "./log-buffer";
import { LogView } from "./log-view";
import { useLog } from "./use-log";

const STREAMS = ["lifecycle", "stderr", "stdout"] as const;
const asText = (lines: readonly LogEntry[]) =>
  lines.map(({ at, stream, line }) => `${at} ${stream} ${line}`).join("\n");

export default function LogsTab({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const { lines, missed, failure } = useLog(server.id);
  const [search, setSearch] = useUrlState("q");
  const [streams, setStreams] = useState({ lifecycle: true, stderr: true, stdout: true });
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(true);
  const wanted = useDeferredValue(search);
  const shown = useMemo(() => filterLines(lines, { ...streams, search: wanted }), [lines, streams, wanted]);
  return (
    <div className="space-y-3">
      {failure && <FailureAlert title={t("logs.failed")} failure={failure} />}
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <SearchBox label={t("logs.search")} value={search} onChange={setSearch} className="w-full sm:w-64" />
        <StreamChoice value={streams} onChange={setStreams} />
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

type Streams = Omit<LogFilter, "search">;

function StreamChoice({ value, onChange }: { value: Streams; onChange: (streams: Streams) => void }) {
  const { t } = useTranslation();
  return (
    <fieldset className="flex flex-wrap gap-x-3">
      <legend className="sr-only">{t("logs.streams")}</legend>
      {STREAMS.map((stream) => (
        <Toggle
          key={stream}
          label={t(`logs.${stream}`)}
          checked={value[stream]}
          onChange={(on) => onChange({ ...value, [stream]: on })}
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

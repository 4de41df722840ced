// Every recent call, live: filters that are part of the address, details on request, export.
import { useQuery } from "@tanstack/react-query";
import { ArrowUp, Download, History } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import { activityQuery } from "../api/queries";
import type { ActivityEntry, Outcome } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { download } from "../ui/download";
import { PageHead } from "../ui/page";
import { SearchBox } from "../ui/search-box";
import { EmptyState, Loading } from "../ui/states";
import { useUrlState } from "../ui/url-state";
import { ActivityTable } from "./activity-table";
import { RunningCalls } from "./running-calls";
import { countFresh, selectCalls } from "./select";

const LIMIT = 1000;
const OUTCOMES: Outcome[] = [
  "ok",
  "tool_error",
  "mcp_error",
  "timeout",
  "cancelled",
  "overloaded",
  "disconnected",
  "too_large",
];

export default function ActivityPage() {
  const { t } = useTranslation();
  const query = useQuery(activityQuery(LIMIT));
  const calls = query.data;
  return (
    <>
      <PageHead title={t("activity.title")}>
        <button type="button" className="btn" disabled={!calls?.length} onClick={() => calls && exportCalls(calls)}>
          <Download size={15} aria-hidden />
          {t("activity.export")}
        </button>
      </PageHead>
      <RunningCalls />
      {query.isError && !calls && (
        <FailureAlert title={t("activity.failed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.isPending && <Loading label={t("app.loading")} />}
      {calls &&
        (calls.length === 0 ? (
          <div className="card">
            <EmptyState icon={<History size={28} aria-hidden />} title={t("activity.none")}>
              {t("activity.noneHint")}
            </EmptyState>
          </div>
        ) : (
          <Calls calls={calls} />
        ))}
    </>
  );
}

const exportCalls = (calls: readonly ActivityEntry[]) =>
  download("activity.jsonl", `${calls.map((call) => JSON.stringify(call)).join("\n")}\n`, "application/jsonl");

function Calls({ calls }: { calls: readonly ActivityEntry[] }) {
  const { t } = useTranslation();
  const away = useAway();
  const [server, setServer] = useUrlState("server");
  const [result, setResult] = useUrlState("result");
  const [search, setSearch] = useUrlState("q");
  const { held, fresh, showFresh } = useHeld(calls);
  const names = useMemo(() => [...new Set(calls.map((call) => call.server))].toSorted(), [calls]);
  const shown = useMemo(() => selectCalls(held, { server, result, search }), [held, server, result, search]);
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <SearchBox label={t("activity.search")} value={search} onChange={setSearch} className="w-full sm:w-56" />
        <select
          className="input"
          aria-label={t("activity.filterServer")}
          value={server}
          onChange={(event) => setServer(event.target.value)}
        >
          <option value="">{t("activity.anyServer")}</option>
          {[...new Set([...names, ...(server ? [server] : [])])].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <select
          className="input"
          aria-label={t("activity.filterResult")}
          value={result}
          onChange={(event) => setResult(event.target.value)}
        >
          <option value="">{t("activity.anyResult")}</option>
          <option value="failures">{t("activity.failures")}</option>
          {OUTCOMES.map((outcome) => (
            <option key={outcome} value={outcome}>
              {t(`activity.outcomes.${outcome}`)}
            </option>
          ))}
        </select>
        <p role="status" className="text-soft">
          {t("activity.shown", { s: shown.length, t: held.length })}
        </p>
      </div>
      {fresh > 0 && (
        <button type="button" className="btn btn-small sticky top-14 z-10 mx-auto mb-2 flex shadow" onClick={showFresh}>
          <ArrowUp size={14} aria-hidden />
          {t("activity.fresh", { n: fresh })}
        </button>
      )}
      {shown.length === 0 ? <EmptyState title={t("activity.noMatch")} /> : <ActivityTable calls={shown} stale={away} />}
    </>
  );
}

/** Calls come in at the top. Who has scrolled down reads on in peace, and is told how many came. */
function useHeld(calls: readonly ActivityEntry[]) {
  const [held, setHeld] = useState(calls);
  const [atTop, setAtTop] = useState(true);
  useEffect(() => {
    const look = () => setAtTop(window.scrollY < 80);
    look();
    window.addEventListener("scroll", look, { passive: true });
    return () => window.removeEventListener("scroll", look);
  }, []);
  const current = atTop ? calls : held;
  if (atTop && held !== calls) setHeld(calls);
  const showFresh = () => {
    setHeld(calls);
    window.scrollTo({ top: 0 });
  };
  return { held: current, fresh: atTop ? 0 : countFresh(held, calls), showFresh };
}

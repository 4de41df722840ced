// The list of servers: search, filters, the table, and what stands there when it is empty.
import { useQuery } from "@tanstack/react-query";
import { Plus, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import { serversQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { openDialog } from "../ui/dialogs";
import { PageHead } from "../ui/page";
import { SearchBox } from "../ui/search-box";
import { EmptyState, useLate } from "../ui/states";
import { useUrlState } from "../ui/url-state";
import { FirstVisit } from "./first-visit";
import { FILTERS, type Filter, type Sort, countOf, selectServers } from "./select";
import { ServersTable } from "./servers-table";

export function ServersPage() {
  const { t } = useTranslation();
  const query = useQuery(serversQuery);
  const servers = query.data;
  return (
    <>
      <PageHead title={t("list.title")}>
        <button type="button" className="btn btn-primary" onClick={() => openDialog({ kind: "add" })}>
          <Plus size={16} aria-hidden />
          {t("list.add")}
        </button>
      </PageHead>
      {query.isError && !servers && (
        <FailureAlert title={t("list.loadFailed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.isPending && <Skeleton />}
      {servers && (servers.length === 0 ? <FirstVisit /> : <ServersList servers={servers} />)}
    </>
  );
}

function ServersList({ servers }: { servers: ServerView[] }) {
  const { t } = useTranslation();
  const away = useAway();
  const [search, setSearch] = useUrlState("q");
  const [filter, setFilter] = useUrlState("status", "all");
  const [sort, setSort] = useUrlState("sort", "name");
  const shown = useMemo(
    () => selectServers(servers, search, filter as Filter, sort as Sort),
    [servers, search, filter, sort],
  );
  const clear = () => {
    setSearch("");
    setFilter("all");
  };
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <SearchBox label={t("list.search")} value={search} onChange={setSearch} className="w-full sm:w-64" />
        <FilterChips servers={servers} search={search} value={filter as Filter} onChange={setFilter} />
        {away && <span className="tag bg-warn-soft text-warn">{t("away.stale")}</span>}
        <p role="status" className="sr-only">
          {t("list.shown", { shown: shown.length, total: servers.length })}
        </p>
      </div>
      {shown.length > 0 ? (
        <ServersTable servers={shown} sort={sort as Sort} onSort={setSort} />
      ) : (
        <div className="card">
          <EmptyState
            icon={<SearchX size={28} aria-hidden />}
            title={t("list.noMatch")}
            action={
              <button type="button" className="btn" onClick={clear}>
                {t("common.clear")}
              </button>
            }
          >
            {t("list.noMatchHint")}
          </EmptyState>
        </div>
      )}
    </>
  );
}

type ChipsProps = { servers: ServerView[]; search: string; value: Filter; onChange: (filter: Filter) => void };

function FilterChips({ servers, search, value, onChange }: ChipsProps) {
  const { t } = useTranslation();
  // The rare filter is offered while it has rows, or while it is chosen.
  const offered = FILTERS.filter(
    (filter) => filter !== "attention" || value === filter || countOf(servers, filter, search) > 0,
  );
  return (
    <div role="group" aria-label={t("list.filter")} className="flex flex-wrap gap-1.5">
      {offered.map((filter) => (
        <button
          key={filter}
          type="button"
          className="chip"
          aria-pressed={value === filter}
          onClick={() => onChange(filter)}
        >
          {filter === "all" ? t("list.all") : filter === "attention" ? t("health.attention") : t(`status.${filter}`)}
          <span className="text-xs">{countOf(servers, filter, search)}</span>
        </button>
      ))}
    </div>
  );
}

/** Five grey rows, after a moment: a list that comes at once must not flash. */
function Skeleton() {
  const { t } = useTranslation();
  const late = useLate(150);
  return (
    <div role="status" aria-busy className="card divide-y divide-line">
      <span className="sr-only">{t("app.loading")}</span>
      {late &&
        Array.from({ length: 5 }, (_, index) => (
          <div key={index} className="flex gap-6 p-4">
            <span className="skeleton h-4 w-32" />
            <span className="skeleton h-4 w-20" />
            <span className="skeleton h-4 flex-1" />
          </div>
        ))}
    </div>
  );
}

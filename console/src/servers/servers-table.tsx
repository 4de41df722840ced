// The table of servers. On a phone each row becomes a block; explicit roles keep it a table then.
import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useAway } from "../api/connection";
import { activityQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { durationsByServer } from "./latency";
import type { Sort } from "./select";
import { ServerRow } from "./server-row";

type Props = { servers: ServerView[]; sort: Sort; onSort: (sort: Sort) => void };

/** Enough of the recent calls for the lines of a screenful of servers. */
const CALLS = 500;

export function ServersTable({ servers, sort, onSort }: Props) {
  const { t } = useTranslation();
  const away = useAway();
  const calls = useQuery(activityQuery(CALLS)).data;
  const durations = useMemo(() => durationsByServer(calls ?? []), [calls]);
  const sortable = (key: "name" | "status", title: string) => (
    <SortableHead title={title} by={key} sort={sort} onSort={onSort} />
  );
  return (
    <div className={`card overflow-hidden ${away ? "stale" : ""}`}>
      <table role="table" aria-label={t("list.title")} className="block w-full md:table">
        <thead role="rowgroup" className="sr-only md:not-sr-only md:table-header-group">
          <tr role="row" className="border-b border-line bg-sunken text-left text-sm text-soft">
            {sortable("name", t("list.name"))}
            {sortable("status", t("list.statusColumn"))}
            <Head title={t("list.command")} />
            <Head title={t("list.tools")} />
            <Head title={t("list.latency")} />
            <Head title={t("list.enabled")} />
            <th role="columnheader" scope="col" className="px-3 py-2">
              <span className="sr-only">{t("list.actions")}</span>
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup" className="block md:table-row-group">
          {servers.map((server) => (
            <ServerRow key={server.id} server={server} durations={durations.get(server.id)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head({ title }: { title: string }) {
  return (
    <th role="columnheader" scope="col" className="px-3 py-2 font-medium whitespace-nowrap">
      {title}
    </th>
  );
}

type SortableProps = { title: string; by: "name" | "status"; sort: Sort; onSort: (sort: Sort) => void };

function SortableHead({ title, by, sort, onSort }: SortableProps) {
  const active = sort === by || sort === `-${by}`;
  const down = sort === `-${by}`;
  const Icon = down ? ArrowDown : ArrowUp;
  return (
    <th
      role="columnheader"
      scope="col"
      aria-sort={active ? (down ? "descending" : "ascending") : "none"}
      className="px-3 py-2 font-medium whitespace-nowrap"
    >
      <button
        type="button"
        className="inline-flex items-center gap-1 hover:text-ink"
        onClick={() => onSort(sort === by ? `-${by}` : by)}
      >
        {title}
        <Icon size={13} className={active ? "" : "invisible"} aria-hidden />
      </button>
    </th>
  );
}

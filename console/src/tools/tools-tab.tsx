// The tools of a server: search, schemas, and a way to run each.
import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { lazy, Suspense, useDeferredValue, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Tool } from "../api/mcp";
import { toolsQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { NotConnected } from "../servers/not-connected";
import { isConnected } from "../servers/status";
import { FailureAlert } from "../ui/alert";
import { SearchBox } from "../ui/search-box";
import { EmptyState, Loading } from "../ui/states";
import { useUrlState } from "../ui/url-state";
import { VirtualList } from "../ui/virtual-list";
import { ToolItem } from "./tool-item";

const RunDialog = lazy(() => import("./run-dialog"));

export default function ToolsTab({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const connected = isConnected(server.status);
  const query = useQuery({ ...toolsQuery(server.id), enabled: connected });
  if (!connected) return <NotConnected server={server} />;
  if (query.isError)
    return <FailureAlert title={t("tools.failed")} failure={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading label={t("tools.loading")} />;
  if (query.data.length === 0) return <EmptyState title={t("tools.none")} />;
  return (
    <ToolList server={server} tools={query.data} refresh={() => void query.refetch()} refreshing={query.isFetching} />
  );
}

/** Tools whose name, title or description holds every word. */
export function searchTools(tools: readonly Tool[], search: string): readonly Tool[] {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return tools;
  return tools.filter(({ name, title = "", description = "" }) => {
    const text = `${name}\n${title}\n${description}`.toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}

type ListProps = { server: ServerView; tools: readonly Tool[]; refresh: () => void; refreshing: boolean };

function ToolList({ server, tools, refresh, refreshing }: ListProps) {
  const { t } = useTranslation();
  const [search, setSearch] = useUrlState("q");
  const [running, setRunning] = useState<Tool | null>(null);
  const wanted = useDeferredValue(search);
  const shown = useMemo(() => searchTools(tools, wanted), [tools, wanted]);
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <SearchBox label={t("tools.search")} value={search} onChange={setSearch} className="w-full sm:w-72" />
        <p role="status" className="text-soft">
          {t("tools.count", { s: shown.length, t: tools.length })}
        </p>
        <button
          type="button"
          className="btn btn-quiet btn-icon ml-auto"
          aria-label={t("common.refresh")}
          title={t("common.refresh")}
          onClick={refresh}
        >
          <RefreshCw size={15} className={refreshing ? "spin" : ""} aria-hidden />
        </button>
      </div>
      {shown.length === 0 ? (
        <EmptyState title={t("tools.noMatch")} />
      ) : (
        <div className="card">
          <VirtualList label={t("tools.list")} items={shown} keyOf={(tool) => tool.name} estimate={76}>
            {(tool) => <ToolItem tool={tool} onRun={() => setRunning(tool)} />}
          </VirtualList>
        </div>
      )}
      {running && (
        <Suspense fallback={null}>
          <RunDialog server={server} tool={running} onClose={() => setRunning(null)} />
        </Suspense>
      )}
    </>
  );
}

// The resources of a server: search, filter by type, preview.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useDeferredValue, useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Resource } from "../api/mcp";
import { resourcesQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { NotConnected } from "../servers/not-connected";
import { isConnected } from "../servers/status";
import { FailureAlert } from "../ui/alert";
import { SearchBox } from "../ui/search-box";
import { EmptyState, Loading } from "../ui/states";
import { useUrlState } from "../ui/url-state";
import { VirtualList } from "../ui/virtual-list";
import { type MimeGroup, groupOf } from "./mime";
import { ResourceItem } from "./resource-item";
import { ResourceTemplates } from "./resource-templates";

const PreviewDialog = lazy(() => import("./preview-dialog"));

export default function ResourcesTab({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const connected = isConnected(server.status);
  const query = useQuery({ ...resourcesQuery(server.id), enabled: connected });
  const [shown, setShown] = useState<Resource | null>(null);
  if (!connected) return <NotConnected server={server} />;
  if (query.isError)
    return <FailureAlert title={t("resources.failed")} failure={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading label={t("resources.loading")} />;
  return (
    <div className="space-y-6">
      {query.data.length === 0 ? (
        <EmptyState title={t("resources.none")} />
      ) : (
        <ResourceList resources={query.data} onPreview={setShown} />
      )}
      <ResourceTemplates server={server} onPreview={setShown} />
      {shown && (
        <Suspense fallback={null}>
          <PreviewDialog server={server} resource={shown} onClose={() => setShown(null)} />
        </Suspense>
      )}
    </div>
  );
}

/** Resources whose address or name holds every word, of the wanted type. */
export function searchResources(
  resources: readonly Resource[],
  search: string,
  group: MimeGroup | "all",
): readonly Resource[] {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return resources.filter(({ uri, name = "", title = "", mimeType }) => {
    if (group !== "all" && groupOf(mimeType) !== group) return false;
    const text = `${uri}\n${name}\n${title}`.toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function ResourceList({
  resources,
  onPreview,
}: {
  resources: readonly Resource[];
  onPreview: (resource: Resource) => void;
}) {
  const { t } = useTranslation();
  const [search, setSearch] = useUrlState("q");
  const [group, setGroup] = useUrlState("type", "all");
  const wanted = useDeferredValue(search);
  const shown = useMemo(
    () => searchResources(resources, wanted, group as MimeGroup | "all"),
    [resources, wanted, group],
  );
  return (
    <div>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <SearchBox label={t("resources.search")} value={search} onChange={setSearch} className="w-full sm:w-72" />
        <MimeFilter value={group} onChange={setGroup} />
        <p role="status" className="text-soft">
          {t("resources.count", { s: shown.length, t: resources.length })}
        </p>
      </div>
      {shown.length === 0 ? (
        <EmptyState title={t("resources.noMatch")} />
      ) : (
        <div className="card">
          <VirtualList label={t("resources.list")} items={shown} keyOf={(resource) => resource.uri} estimate={64}>
            {(resource) => <ResourceItem resource={resource} onPreview={() => onPreview(resource)} />}
          </VirtualList>
        </div>
      )}
    </div>
  );
}

function MimeFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t } = useTranslation();
  const name = useId();
  return (
    <fieldset className="flex flex-wrap gap-1.5">
      <legend className="sr-only">{t("resources.filter")}</legend>
      {(["all", "text", "image", "other"] as const).map((group) => (
        <label key={group} className="chip cursor-pointer">
          <input
            type="radio"
            className="sr-only"
            name={name}
            checked={value === group}
            onChange={() => onChange(group)}
          />
          {t(`resources.${group}`)}
        </label>
      ))}
    </fieldset>
  );
}

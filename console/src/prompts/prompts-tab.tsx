// The prompts of a server: their arguments, and the messages they make.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Prompt } from "../api/mcp";
import { promptsQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { NotConnected } from "../servers/not-connected";
import { isConnected } from "../servers/status";
import { FailureAlert } from "../ui/alert";
import { SearchBox } from "../ui/search-box";
import { EmptyState, Loading } from "../ui/states";
import { useUrlState } from "../ui/url-state";
import { VirtualList } from "../ui/virtual-list";
import { PromptItem } from "./prompt-item";

export default function PromptsTab({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const connected = isConnected(server.status);
  const query = useQuery({ ...promptsQuery(server.id), enabled: connected });
  if (!connected) return <NotConnected server={server} />;
  if (query.isError)
    return <FailureAlert title={t("prompts.failed")} failure={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading label={t("prompts.loading")} />;
  if (query.data.length === 0) return <EmptyState title={t("prompts.none")} />;
  return <PromptList server={server} prompts={query.data} />;
}

function PromptList({ server, prompts }: { server: ServerView; prompts: readonly Prompt[] }) {
  const { t } = useTranslation();
  const [search, setSearch] = useUrlState("q");
  const shown = useMemo(() => {
    const wanted = search.toLocaleLowerCase();
    return prompts.filter(({ name, title = "", description = "" }) =>
      `${name}\n${title}\n${description}`.toLocaleLowerCase().includes(wanted),
    );
  }, [prompts, search]);
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <SearchBox label={t("prompts.search")} value={search} onChange={setSearch} className="w-full sm:w-72" />
        <p role="status" className="text-soft">
          {t("prompts.count", { s: shown.length, t: prompts.length })}
        </p>
      </div>
      {shown.length === 0 ? (
        <EmptyState title={t("prompts.noMatch")} />
      ) : (
        <div className="card">
          <VirtualList label={t("prompts.list")} items={shown} keyOf={(prompt) => prompt.name} estimate={120}>
            {(prompt) => <PromptItem server={server} prompt={prompt} />}
          </VirtualList>
        </div>
      )}
    </>
  );
}

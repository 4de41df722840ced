// The conversations there are, newest first: search, open, delete.
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { LoaderCircle, SquarePen, Trash2 } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import type { ConversationSummary } from "../api/schema";
import { useLanguage } from "../settings/preferences";
import { FailureAlert } from "../ui/alert";
import { when } from "../ui/format";
import { SearchBox } from "../ui/search-box";
import { Loading } from "../ui/states";
import { conversationsQuery } from "./api";

type Props = {
  current: string | null;
  onDelete: (conversation: Pick<ConversationSummary, "id" | "title">) => void;
  /** Something was chosen. */
  onChosen?: () => void;
};

export function ConversationList({ current, onDelete, onChosen }: Props) {
  const { t } = useTranslation();
  const [search, setSearch] = useState("");
  const query = useInfiniteQuery({
    ...conversationsQuery(useDeferredValue(search.trim())),
    placeholderData: keepPreviousData,
  });
  const conversations = query.data?.pages.flatMap((page) => page.conversations) ?? [];
  return (
    <div className="flex h-full min-h-0 flex-col gap-2">
      <Link href="/chat" className="btn" onClick={onChosen}>
        <SquarePen size={15} aria-hidden />
        {t("chat.new")}
      </Link>
      <SearchBox label={t("chat.search")} value={search} onChange={setSearch} />
      {query.isError && !query.data && (
        <FailureAlert title={t("chat.listFailed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.isPending && <Loading label={t("app.loading")} />}
      {query.data && conversations.length === 0 && (
        <p className="px-2 py-6 text-center text-sm text-soft">{t(search ? "chat.noMatch" : "chat.none")}</p>
      )}
      <ul aria-label={t("chat.list")} className="-mx-1 min-h-0 flex-1 overflow-y-auto px-1 pb-2">
        {conversations.map((conversation) => (
          <Item
            key={conversation.id}
            conversation={conversation}
            here={conversation.id === current}
            onDelete={() => onDelete(conversation)}
            {...(onChosen ? { onChosen } : {})}
          />
        ))}
        {query.hasNextPage && (
          <li className="py-2 text-center">
            <button
              type="button"
              className="btn btn-small"
              disabled={query.isFetchingNextPage}
              onClick={() => void query.fetchNextPage()}
            >
              {t("chat.more")}
            </button>
          </li>
        )}
      </ul>
    </div>
  );
}

type ItemProps = { conversation: ConversationSummary; here: boolean; onDelete: () => void; onChosen?: () => void };

function Item({ conversation, here, onDelete, onChosen }: ItemProps) {
  const { t } = useTranslation();
  const language = useLanguage();
  const { id, title, running, updated_at: updated } = conversation;
  return (
    <li className={`flex items-center gap-1 rounded-lg pr-1 ${here ? "bg-accent-soft" : "hover:bg-hover"}`}>
      <Link
        href={`/chat/${id}`}
        aria-current={here ? "page" : undefined}
        onClick={onChosen}
        className="min-w-0 flex-1 rounded-lg px-2 py-1.5"
      >
        <span className={`block truncate ${here ? "font-medium text-accent" : ""}`}>{title}</span>
        <span className="flex items-center gap-1.5 text-xs text-soft">
          {running && (
            <>
              <LoaderCircle size={12} className="spin" aria-hidden />
              {t("chat.status.running")} ·
            </>
          )}
          <time dateTime={updated}>{when(updated, language)}</time>
        </span>
      </Link>
      <button
        type="button"
        className="btn btn-quiet btn-icon btn-small text-soft"
        aria-label={t("chat.deleteOf", { title })}
        title={t("remove.confirm")}
        onClick={onDelete}
      >
        <Trash2 size={14} aria-hidden />
      </button>
    </li>
  );
}

// The chat: conversations at the side, the open one with its log, and where the next message is
// written.
import { useQuery } from "@tanstack/react-query";
import { Bot, MessageSquareOff } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "wouter";
import { useAway } from "../api/connection";
import type { ConversationSummary } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { Modal } from "../ui/modal";
import { EmptyState, Loading } from "../ui/states";
import { providersQuery } from "./api";
import { DeleteConversation, RenameDialog } from "./chat-dialogs";
import { Choices } from "./choices";
import { Composer, type ComposerHandle } from "./composer";
import { ConversationHead } from "./conversation-head";
import { ConversationList } from "./conversation-list";
import { ConversationLog } from "./conversation-log";
import { NEW, changeDraft, chosen, useDraft } from "./draft";
import type { GoOn } from "./message-view";
import { useConversation } from "./use-conversation";
import { useTurn } from "./use-turn";

type Target = Pick<ConversationSummary, "id" | "title">;

export default function ChatPage({ params }: { params: { id?: string } }) {
  const { t } = useTranslation();
  const id = params.id ?? null;
  const [, navigate] = useLocation();
  const [listOpen, setListOpen] = useState(false);
  const [doomed, setDoomed] = useState<Target | null>(null);
  const deleted = () => {
    const wasOpen = doomed?.id === id;
    setDoomed(null);
    if (wasOpen) navigate("/chat");
  };
  return (
    <div className="chat-page flex">
      <section
        aria-label={t("chat.list")}
        className="hidden w-64 flex-none border-r border-line px-3 py-3 lg:block xl:w-72"
      >
        <ConversationList current={id} onDelete={setDoomed} />
      </section>
      <OpenConversation id={id} onList={() => setListOpen(true)} onDelete={setDoomed} />
      {listOpen && (
        <Modal title={t("chat.list")} open onClose={() => setListOpen(false)} shape="side">
          <ConversationList current={id} onDelete={setDoomed} onChosen={() => setListOpen(false)} />
        </Modal>
      )}
      {doomed && <DeleteConversation conversation={doomed} onClose={() => setDoomed(null)} onDeleted={deleted} />}
    </div>
  );
}

type OpenProps = { id: string | null; onList: () => void; onDelete: (conversation: Target) => void };

function OpenConversation({ id, onList, onDelete }: OpenProps) {
  const { t } = useTranslation();
  const [, navigate] = useLocation();
  const away = useAway();
  const providers = useQuery(providersQuery);
  const { feed, retry, showEarlier } = useConversation(id);
  const { conversation } = feed;
  const key = id ?? NEW;
  const draft = useDraft(key);
  const choice = chosen(draft.choice, conversation, providers.data);
  const turn = useTurn(id, choice);
  const composer = useRef<ComposerHandle>(null);
  const [renaming, setRenaming] = useState(false);
  // The conversation that was begun here keeps the focus where it is.
  const [begun, setBegun] = useState<string | null>(null);
  const [sent, setSent] = useState(0);

  const send = async () => {
    const { text } = draft;
    const made = await turn.begin({ message: text });
    if (!made) return;
    changeDraft(key, { text: "" });
    // The button that was pressed is gone.
    composer.current?.focus();
    setSent(sent + 1);
    if (made === id) return;
    setBegun(made);
    navigate(`/chat/${made}`);
  };
  const goOn: GoOn = {
    disabled: turn.busy || away,
    onContinue: () => void turn.begin({ action: "continue" }).then(() => composer.current?.focus()),
    onAnswerNow: () => void turn.begin({ action: "answer_now" }).then(() => composer.current?.focus()),
  };
  const stop = () => void turn.stop().then(() => composer.current?.focus());

  return (
    <section aria-label={t("chat.title")} className={`flex min-w-0 flex-1 flex-col ${away ? "stale" : ""}`}>
      <ConversationHead
        conversation={conversation}
        titleKey={id === begun ? NEW : key}
        onList={onList}
        onRename={() => setRenaming(true)}
        onDelete={() => conversation && onDelete(conversation)}
      />
      {feed.deleted ? (
        <Gone />
      ) : conversation ? (
        <ConversationLog conversation={conversation} sent={sent} goOn={goOn} onEarlier={showEarlier} />
      ) : (
        <Middle>
          {feed.failure !== null ? (
            <FailureAlert title={t("chat.loadFailed")} failure={feed.failure} retry={retry} />
          ) : id !== null || providers.isPending ? (
            <Loading label={t("app.loading")} />
          ) : providers.data ? (
            <Welcome configured={providers.data.configured} />
          ) : (
            <FailureAlert
              title={t("chat.providersFailed")}
              failure={providers.error}
              retry={() => void providers.refetch()}
            />
          )}
        </Middle>
      )}
      <div className="px-3 pt-1 pb-3 md:px-6">
        {providers.data && !providers.data.configured
          ? id !== null && <NotConfigured />
          : !feed.deleted && (
              <Composer
                handle={composer}
                text={draft.text}
                onText={(text) => changeDraft(key, { text })}
                onSend={() => void send()}
                onStop={stop}
                running={conversation?.running ?? false}
                busy={turn.busy}
                disabled={away || (id !== null && !conversation)}
              >
                {providers.data && (
                  <Choices
                    providers={providers.data}
                    chosen={choice}
                    onChange={(change) => changeDraft(key, { choice: { ...draft.choice, ...change } })}
                  />
                )}
              </Composer>
            )}
      </div>
      <div role="status" aria-label={t("chat.announcements")} className="sr-only">
        {feed.said.n > 0 && <p key={feed.said.n}>{feed.said.text}</p>}
      </div>
      {renaming && conversation && <RenameDialog conversation={conversation} onClose={() => setRenaming(false)} />}
    </section>
  );
}

function Middle({ children }: { children: ReactNode }) {
  return <div className="flex min-h-0 flex-1 flex-col justify-center overflow-y-auto px-4">{children}</div>;
}

function Welcome({ configured }: { configured: boolean }) {
  const { t } = useTranslation();
  if (configured)
    return (
      <EmptyState icon={<Bot size={30} aria-hidden />} title={t("chat.welcome")}>
        {t("chat.welcomeText")}
      </EmptyState>
    );
  return (
    <EmptyState
      icon={<MessageSquareOff size={30} aria-hidden />}
      title={t("chat.notConfigured")}
      action={
        <Link href="/settings" className="btn btn-primary">
          {t("chat.openSettings")}
        </Link>
      }
    >
      {t("chat.notConfiguredText")}
    </EmptyState>
  );
}

function NotConfigured() {
  const { t } = useTranslation();
  return (
    <p className="flex flex-wrap items-center justify-center gap-3 py-2 text-soft">
      {t("chat.notConfigured")}
      <Link href="/settings" className="btn">
        {t("chat.openSettings")}
      </Link>
    </p>
  );
}

function Gone() {
  const { t } = useTranslation();
  return (
    <Middle>
      <EmptyState
        title={t("chat.gone")}
        action={
          <Link href="/chat" className="btn">
            {t("chat.new")}
          </Link>
        }
      >
        {t("chat.goneText")}
      </EmptyState>
    </Middle>
  );
}

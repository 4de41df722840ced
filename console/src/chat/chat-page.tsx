// The chat: conversations at the side, the open one with its log, and where the next message is
// written.
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";
import type { ConversationSummary } from "../api/schema";
import { Modal } from "../ui/modal";
import { DeleteConversation, RenameDialog } from "./chat-dialogs";
import { Choices } from "./choices";
import { Composer } from "./composer";
import { ConversationHead } from "./conversation-head";
import { ConversationList } from "./conversation-list";
import { ConversationLog } from "./conversation-log";
import { Gone, InsteadOfLog, NotConfigured } from "./empty";
import { type OpenChat, useChat } from "./use-chat";

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
  const chat = useChat(id);
  const { conversation, deleted, said } = chat.feed;
  const [renaming, setRenaming] = useState(false);
  return (
    <section aria-label={t("chat.title")} className={`flex min-w-0 flex-1 flex-col ${chat.away ? "stale" : ""}`}>
      <ConversationHead
        conversation={conversation}
        titleKey={chat.titleKey}
        onList={onList}
        onRename={() => setRenaming(true)}
        onDelete={() => conversation && onDelete(conversation)}
      />
      {deleted ? (
        <Gone />
      ) : conversation ? (
        <ConversationLog conversation={conversation} sent={chat.sent} goOn={chat.goOn} onEarlier={chat.showEarlier} />
      ) : (
        <InsteadOfLog chat={chat} />
      )}
      <Foot chat={chat} />
      {/* Only what is finished, and only while somebody listens. */}
      <div role="status" aria-label={t("chat.announcements")} className="sr-only">
        {said.n > 0 && <p key={said.n}>{said.text}</p>}
      </div>
      {renaming && conversation && <RenameDialog conversation={conversation} onClose={() => setRenaming(false)} />}
    </section>
  );
}

/** Where the next message is written, if there is a model to read it. */
function Foot({ chat }: { chat: OpenChat }) {
  const { conversation, deleted } = chat.feed;
  const providers = chat.providers.data;
  if (deleted) return null;
  if (providers && !providers.configured) return chat.id === null ? null : <NotConfigured />;
  return (
    <div className="px-3 pt-1 pb-3 md:px-6">
      <Composer
        handle={chat.composer}
        text={chat.text}
        onText={chat.write}
        onSend={() => void chat.send()}
        onStop={chat.stop}
        running={conversation?.running ?? false}
        busy={chat.busy}
        disabled={chat.away || !chat.choice.model || (chat.id !== null && !conversation)}
      >
        {providers && <Choices providers={providers} chosen={chat.choice} onChange={chat.choose} />}
      </Composer>
    </div>
  );
}

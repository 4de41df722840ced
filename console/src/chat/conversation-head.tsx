// The title of the open conversation, and what can be done with it.
import { Braces, Ellipsis, FileText, MessagesSquare, Pencil, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { download } from "../ui/download";
import { tellFailure } from "../ui/notices";
import { PageTitle } from "../ui/page";
import { exported } from "./api";
import type { LiveConversation } from "./conversation";

type Props = {
  conversation: LiveConversation | null;
  /** Changes when another conversation was chosen: the focus then goes to the title. */
  titleKey: string;
  onList: () => void;
  onRename: () => void;
  onDelete: () => void;
};

export function ConversationHead({ conversation, titleKey, onList, onRename, onDelete }: Props) {
  const { t } = useTranslation();
  // On a phone the title needs the room.
  const [more, setMore] = useState(false);
  return (
    <div className="flex flex-wrap items-center gap-x-2 border-b border-line px-4 py-2 md:px-6">
      <Action label={t("chat.list")} onClick={onList} className="lg:hidden">
        <MessagesSquare size={17} aria-hidden />
      </Action>
      <div className="flex min-h-8 min-w-0 flex-1 items-center [&_h1]:line-clamp-1">
        <PageTitle key={titleKey}>{conversation?.title ?? t("chat.title")}</PageTitle>
      </div>
      {conversation && (
        <>
          <Action label={t("list.actions")} expanded={more} onClick={() => setMore(!more)} className="sm:hidden">
            <Ellipsis size={17} aria-hidden />
          </Action>
          <div className={`${more ? "flex" : "hidden"} flex-none justify-end max-sm:basis-full sm:flex`}>
            <Actions conversation={conversation} onRename={onRename} onDelete={onDelete} />
          </div>
        </>
      )}
    </div>
  );
}

function Actions({
  conversation,
  onRename,
  onDelete,
}: {
  conversation: LiveConversation;
  onRename: () => void;
  onDelete: () => void;
}) {
  const { t } = useTranslation();
  const save = (format: "json" | "markdown") => {
    const name = `${fileName(conversation.title)}.${format === "json" ? "json" : "md"}`;
    exported(conversation.id, format)
      .then((blob) => download(name, blob, blob.type))
      .catch((error: unknown) => tellFailure(t("chat.exportFailed"), error));
  };
  return (
    <>
      <Action label={t("chat.rename")} onClick={onRename}>
        <Pencil size={16} aria-hidden />
      </Action>
      <Action label={t("chat.exportMarkdown")} onClick={() => save("markdown")}>
        <FileText size={16} aria-hidden />
      </Action>
      <Action label={t("chat.exportJson")} onClick={() => save("json")}>
        <Braces size={16} aria-hidden />
      </Action>
      <Action label={t("chat.delete")} onClick={onDelete}>
        <Trash2 size={16} aria-hidden />
      </Action>
    </>
  );
}

type ActionProps = {
  label: string;
  onClick: () => void;
  children: ReactNode;
  className?: string;
  expanded?: boolean;
};

function Action({ label, onClick, children, className = "", expanded }: ActionProps) {
  return (
    <button
      type="button"
      className={`btn btn-quiet btn-icon ${className}`}
      aria-label={label}
      aria-expanded={expanded}
      title={label}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

/** A title as the name of a file. */
export function fileName(title: string): string {
  const plain = [...title].map((letter) => (/[\p{L}\p{N}._ -]/u.test(letter) ? letter : "-")).join("");
  return plain.trim().slice(0, 60) || "conversation";
}

// The messages of a conversation, which the page follows to the end until somebody scrolls up.
import { ArrowDown, TriangleAlert } from "lucide-react";
import { type MouseEvent, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { tellFailure } from "../ui/notices";
import { type Block, blocksOf } from "./blocks";
import { CallRuns } from "./call-runs";
import type { LiveConversation } from "./conversation";
import { AnswerView, ContinueButton, type GoOn, NoticeView, Thinking, UserView } from "./message-view";
import { OpenQuestions } from "./question-view";

/** So near to the end counts as being there. */
const NEAR = 48;

type Props = {
  conversation: LiveConversation;
  /** How many messages were sent from here: who sends one wants to see it. */
  sent: number;
  goOn: GoOn;
  onEarlier: () => Promise<void>;
};

export function ConversationLog({ conversation, sent, goOn, onEarlier }: Props) {
  const { t } = useTranslation();
  const { messages, running, can_continue: canContinue } = conversation;
  const blocks = useMemo(() => blocksOf(messages), [messages]);
  const last = messages.at(-1);
  const idle = running && !conversation.retrying && isIdle(blocks);
  return (
    <LogFrame follow={`${conversation.id} ${sent}`}>
      {conversation.earlier && <Earlier onEarlier={onEarlier} />}
      <OpenQuestions value={conversation.questions}>
        {blocks.map((block) => (
          <BlockView key={block.key} block={block} conversation={conversation.id} goOn={running ? null : goOn} />
        ))}
      </OpenQuestions>
      {idle && <Thinking />}
      {conversation.retrying && (
        <p role="status" className="text-sm text-warn">
          {t("chat.retrying", {
            attempt: conversation.retrying.attempt,
            of: conversation.retrying.of,
            seconds: Math.ceil(conversation.retrying.after_ms / 1000),
          })}{" "}
          <span className="text-soft">{conversation.retrying.message}</span>
        </p>
      )}
      {!running && canContinue && last?.role !== "notice" && (
        // No notice was left: the daemon did not live to see the end.
        <p className="flex flex-wrap items-center gap-2 text-sm text-warn">
          <TriangleAlert size={15} aria-hidden />
          <span>{t("chat.interrupted")}</span>
          <ContinueButton goOn={goOn} />
        </p>
      )}
    </LogFrame>
  );
}

/** Nothing on the page says by itself that something is under way. */
function isIdle(blocks: Block[]): boolean {
  const last = blocks.at(-1);
  if (last?.kind === "answer") return last.message.state !== "streaming";
  if (last?.kind === "calls") return last.runs.every(({ calls }) => calls.every(({ status }) => status !== "running"));
  return true;
}

function BlockView({ block, conversation, goOn }: { block: Block; conversation: string; goOn: GoOn | null }) {
  switch (block.kind) {
    case "user":
      return <UserView message={block.message} />;
    case "answer":
      return <AnswerView message={block.message} />;
    case "calls":
      return <CallRuns conversation={conversation} runs={block.runs} latest={block.latest} />;
    case "notice":
      return <NoticeView notice={block.notice} goOn={block.last ? goOn : null} />;
  }
}

function Earlier({ onEarlier }: { onEarlier: () => Promise<void> }) {
  const { t } = useTranslation();
  const [busy, setBusy] = useState(false);
  const show = async () => {
    setBusy(true);
    await onEarlier().catch((error: unknown) => tellFailure(t("chat.earlierFailed"), error));
    setBusy(false);
  };
  return (
    <p className="text-center">
      <button type="button" className="btn btn-small" disabled={busy} aria-busy={busy} onClick={() => void show()}>
        {t("chat.earlier")}
      </button>
    </p>
  );
}

/** Scrolls by itself while new text comes; not under the eyes of who reads further up. */
function LogFrame({ follow, children }: { follow: string; children: ReactNode }) {
  const { t } = useTranslation();
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const top = useRef(0);
  const [atEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    stuck.current = true;
    setAtEnd(true);
    frame.current?.scrollTo({ top: frame.current.scrollHeight });
  };
  useLayoutEffect(() => {
    stuck.current = true;
    frame.current?.scrollTo({ top: frame.current.scrollHeight });
  }, [follow]);
  useEffect(() => {
    const box = frame.current!;
    const shown = new WeakSet<Element>();
    const grown = new ResizeObserver(() => {
      const start = stuck.current ? startOfQuestion(box, shown) : null;
      if (start !== null) stuck.current = false;
      if (stuck.current || start !== null) box.scrollTo({ top: start ?? box.scrollHeight });
      setAtEnd(isNearEnd(box));
    });
    grown.observe(content.current!);
    grown.observe(box);
    return () => grown.disconnect();
  }, []);
  // The event of our own scrolling comes late, when more may stand below: only who scrolls up wants
  // to stay where they are.
  const scrolled = () => {
    const box = frame.current!;
    const [before, near] = [top.current, isNearEnd(box)];
    top.current = box.scrollTop;
    if (near) stuck.current = true;
    else if (box.scrollTop < before) stuck.current = false;
    setAtEnd(near);
  };
  // Who opens a card wants to read it, not to be taken to the end.
  const pressed = (event: MouseEvent) => {
    if ((event.target as HTMLElement).closest("[aria-expanded]")) stuck.current = false;
  };
  return (
    <div className="relative min-h-0 flex-1">
      {/* Only finished texts are announced, by a region of their own. It scrolls, hence the
          keyboard must get at it. */}
      <div
        ref={frame}
        role="log"
        aria-live="off"
        aria-label={t("chat.log")}
        tabIndex={0}
        className="h-full overflow-y-auto overscroll-contain px-4 md:px-6"
        onScroll={scrolled}
        onClickCapture={pressed}
      >
        <div ref={content} className="mx-auto max-w-3xl space-y-4 py-4">
          {children}
        </div>
      </div>
      {!atEnd && (
        <button
          type="button"
          className="btn btn-small absolute bottom-3 left-1/2 -translate-x-1/2 shadow"
          onClick={toEnd}
        >
          <ArrowDown size={14} aria-hidden />
          {t("logs.jump")}
        </button>
      )}
    </div>
  );
}

const isNearEnd = (box: HTMLElement) => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;

/** Where a question begins that is new and longer than the box: it is read from its beginning. */
function startOfQuestion(box: HTMLElement, shown: WeakSet<Element>): number | null {
  const question = box.querySelector("[data-question]");
  if (!question || shown.has(question)) return null;
  shown.add(question);
  const start = question.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
  return start < box.scrollHeight - box.clientHeight ? start : null;
}

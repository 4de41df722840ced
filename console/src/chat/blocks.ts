// In which order and in which groups a conversation is drawn. Pure.
import type { AssistantMessage, Message, Notice, ToolCall, UserMessage } from "./types";

/** Tool calls that follow one another: one card, or many that went well in one frame. */
export type CallRun = { calls: ToolCall[]; folded: boolean };

export type Block =
  | { kind: "user"; key: string; message: UserMessage }
  | { kind: "answer"; key: string; message: AssistantMessage }
  /** `latest`: nothing was asked since. */
  | { kind: "calls"; key: string; runs: CallRun[]; latest: boolean }
  | { kind: "notice"; key: string; notice: Notice; last: boolean };

/** So many that went well are shown as one. */
const FOLD_FROM = 3;

export function blocksOf(messages: readonly Message[]): Block[] {
  const lastQuestion = messages.findLastIndex(({ role }) => role === "user");
  const blocks: Block[] = [];
  for (const [index, message] of messages.entries()) {
    const key = message.id;
    if (message.role === "user") blocks.push({ kind: "user", key, message });
    else if (message.role === "notice")
      blocks.push({ kind: "notice", key, notice: message, last: index === messages.length - 1 });
    else {
      if (hasWords(message)) blocks.push({ kind: "answer", key, message });
      if (message.tool_calls.length > 0) addCalls(blocks, message, index > lastQuestion);
    }
  }
  return blocks;
}

/** An answer that has nothing but calls is drawn as its calls. */
function hasWords(message: AssistantMessage): boolean {
  if (message.text !== "" || message.reasoning) return true;
  return message.tool_calls.length === 0 && message.state !== "complete";
}

/** Steps without a word between them are one chain of calls. */
function addCalls(blocks: Block[], { id, tool_calls }: AssistantMessage, latest: boolean): void {
  const last = blocks.at(-1);
  if (last?.kind !== "calls") {
    blocks.push({ kind: "calls", key: `${id}:calls`, runs: runsOf(tool_calls), latest });
    return;
  }
  last.runs = runsOf([...last.runs.flatMap(({ calls }) => calls), ...tool_calls]);
}

/** Only what went well is folded: a failure is always seen. */
export function runsOf(calls: readonly ToolCall[]): CallRun[] {
  const runs: CallRun[] = [];
  let good: ToolCall[] = [];
  const close = () => {
    if (good.length >= FOLD_FROM) runs.push({ calls: good, folded: true });
    else runs.push(...good.map((call) => ({ calls: [call], folded: false })));
    good = [];
  };
  for (const call of calls) {
    if (call.status === "done") good.push(call);
    else {
      close();
      runs.push({ calls: [call], folded: false });
    }
  }
  close();
  return runs;
}

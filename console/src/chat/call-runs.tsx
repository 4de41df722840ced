// The tool calls of a chain, in time order. Many that went well share one frame, which is closed
// once something else was asked.
import { Wrench } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { CallRun } from "./blocks";
import { DisclosureButton, useOpen } from "./disclosure";
import { ToolCard } from "./tool-card";
import type { ToolCall } from "./types";

type Props = { conversation: string; runs: CallRun[]; latest: boolean };

export function CallRuns({ conversation, runs, latest }: Props) {
  return (
    <div className="space-y-2">
      {runs.map(({ calls, folded }) => {
        const first = calls[0]!;
        return folded ? (
          <Folded key={first.call_id} conversation={conversation} calls={calls} latest={latest} />
        ) : (
          <ToolCard key={first.call_id} conversation={conversation} call={first} />
        );
      })}
    </div>
  );
}

function Folded({ conversation, calls, latest }: { conversation: string; calls: ToolCall[]; latest: boolean }) {
  const { t } = useTranslation();
  const id = useId();
  const [open, toggle] = useOpen(`run:${calls[0]!.call_id}`, latest);
  const names = [...new Set(calls.map(({ tool }) => tool))];
  return (
    <div className="tool-run card overflow-hidden">
      <div className="flex min-w-0 items-center gap-2 px-2 py-1.5">
        <DisclosureButton open={open} onToggle={toggle} controls={id}>
          <Wrench size={14} aria-hidden />
          {t("chat.used", { n: calls.length })}
        </DisclosureButton>
        {!open && <code className="truncate text-sm text-soft">{names.join(", ")}</code>}
      </div>
      {open && (
        <div id={id} className="tool-run">
          {calls.map((call) => (
            <ToolCard key={call.call_id} conversation={conversation} call={call} />
          ))}
        </div>
      )}
    </div>
  );
}

// What a tool gave: text, images, resources, structured content. A long result comes cut, with
// its size; the whole of it is asked for when somebody wants to see it.
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ContentBlock } from "../api/mcp";
import { ContentView, ResourceView } from "../tools/content-view";
import { FailureAlert } from "../ui/alert";
import { bytes } from "../ui/format";
import { JsonView, WholeText } from "../ui/json-view";
import { Loading } from "../ui/states";
import { wholeCallQuery } from "./api";
import type { CallContent, ToolCall } from "./types";

/** Whether a failed call gave more to see than its message. */
export function hasContent(result: CallContent | null | undefined): boolean {
  if (!result) return false;
  const blocks = Array.isArray(result.content) ? result.content : [];
  return result.structuredContent !== undefined || blocks.some(({ type }) => type !== "text");
}

export function ResultView({ conversation, call }: { conversation: string; call: ToolCall }) {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState(false);
  const content = call.result ?? {};
  // A cut picture is no picture: the whole is asked for at once.
  const enabled = call.truncated && (wanted || hasBinary(content));
  const whole = useQuery({ ...wholeCallQuery(conversation, call.call_id), enabled });
  const frame = useRef<HTMLDivElement>(null);
  const showAll = () => {
    setWanted(true);
    // The button goes away, the focus stays here.
    frame.current?.focus();
  };
  const shown = whole.data?.result;
  return (
    <div ref={frame} tabIndex={-1} className="outline-none">
      {shown ? (
        <WholeText value>
          <Content content={shown} name={call.tool} />
        </WholeText>
      ) : enabled && whole.isPending ? (
        <Loading label={t("app.loading")} />
      ) : (
        <Beginning call={call} failure={whole.error} onRetry={() => void whole.refetch()} onAll={showAll} />
      )}
    </div>
  );
}

type BeginningProps = { call: ToolCall; failure: unknown; onRetry: () => void; onAll: () => void };

/** As much as came with the card, and how to get at the rest. */
function Beginning({ call, failure, onRetry, onAll }: BeginningProps) {
  const { t } = useTranslation();
  if (failure) return <FailureAlert title={t("chat.wholeFailed")} failure={failure} retry={onRetry} />;
  return (
    <>
      <Content content={call.result ?? {}} name={call.tool} />
      {call.truncated && (
        <p className="mt-2 flex flex-wrap items-center gap-2 text-sm text-soft">
          {t("chat.cut")}
          <button type="button" className="btn btn-small" onClick={onAll}>
            {t("common.showAll", { size: bytes(call.result_bytes) })}
          </button>
        </p>
      )}
    </>
  );
}

const blocksOf = (content: CallContent): ContentBlock[] => (Array.isArray(content.content) ? content.content : []);

function hasBinary(content: CallContent): boolean {
  return (
    blocksOf(content).some(
      (block) =>
        block.type === "image" ||
        block.type === "audio" ||
        (block.type === "resource" && block.resource?.blob !== undefined),
    ) || (content.contents ?? []).some(({ blob }) => blob !== undefined)
  );
}

function Content({ content, name }: { content: CallContent; name: string }) {
  const { t } = useTranslation();
  const blocks = blocksOf(content);
  const contents = Array.isArray(content.contents) ? content.contents : [];
  const structured = content.structuredContent ?? content.resources;
  if (blocks.length === 0 && contents.length === 0 && structured === undefined)
    return <p className="text-soft">{t("run.empty")}</p>;
  return (
    <div className="space-y-3">
      {/* Blocks have no name. */}
      {blocks.map((block, index) => (
        <ContentView key={index} block={block} name={name} />
      ))}
      {contents.map((part, index) => (
        <ResourceView key={index} contents={part} />
      ))}
      {structured !== undefined && (
        <div>
          <p className="mb-1 text-sm font-medium">{t("run.structured")}</p>
          <JsonView value={structured} />
        </div>
      )}
    </div>
  );
}

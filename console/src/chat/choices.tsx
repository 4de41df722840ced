// With which model and which tools the next message is sent.
import { useQuery } from "@tanstack/react-query";
import { Wrench } from "lucide-react";
import { Suspense, lazy, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ProvidersView } from "../api/schema";
import { offerQuery } from "./api";
import type { Choice, Chosen } from "./draft";
import { ModelSelect } from "./model-select";

const ToolsDialog = lazy(() => import("./tools-dialog"));

type Props = { providers: ProvidersView; chosen: Chosen; onChange: (change: Choice) => void };

export function Choices({ providers, chosen, onChange }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <ModelSelect
        providers={providers}
        provider={chosen.provider}
        model={chosen.model}
        onChange={(provider, model) => onChange({ provider, model })}
      />
      <ToolsButton chosen={chosen} onClick={() => setOpen(true)} />
      {open && (
        <Suspense fallback={null}>
          <ToolsDialog
            servers={chosen.servers}
            toolsOff={chosen.toolsOff}
            onChange={onChange}
            onClose={() => setOpen(false)}
          />
        </Suspense>
      )}
    </>
  );
}

/** Says what the tools cost before anybody opens it. */
function ToolsButton({ chosen, onClick }: { chosen: Chosen; onClick: () => void }) {
  const { t } = useTranslation();
  const offer = useQuery({ ...offerQuery(chosen.servers, chosen.toolsOff), refetchInterval: 15_000 }).data;
  const count = offer?.tools.filter(({ off }) => !off).length ?? 0;
  return (
    <button type="button" className="btn btn-quiet btn-small px-1.5 text-soft" onClick={onClick}>
      <Wrench size={14} aria-hidden />
      {offer ? t("list.toolCount", { count }) : t("chat.tools")}
      {offer && (
        <span className="max-sm:sr-only">
          {" · "}
          {t("overview.tokensValue", { n: offer.estimated_tokens.toLocaleString("en-US") })}
        </span>
      )}
    </button>
  );
}

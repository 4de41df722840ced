// Sends messages and stops turns.
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { tellFailure } from "../ui/notices";
import type { TurnRequest } from "../api/schema";
import { beginTurn, refreshConversations, stopTurn } from "./api";
import type { Chosen } from "./draft";

export function useTurn(id: string | null, chosen: Chosen) {
  const { t } = useTranslation();
  const [busy, setBusy] = useState(false);

  /** Gives back the conversation's id, or null where it failed, which is told. */
  const begin = async (what: Pick<TurnRequest, "message" | "action">): Promise<string | null> => {
    if (busy) return null;
    setBusy(true);
    try {
      return await beginTurn({
        ...what,
        ...(id ? { conversation_id: id } : {}),
        ...(chosen.provider ? { provider: chosen.provider } : {}),
        ...(chosen.model ? { model: chosen.model } : {}),
        servers: chosen.servers,
        tools_off: chosen.toolsOff,
        // Whoever sends from here can be asked.
        attended: true,
      });
    } catch (error) {
      tellFailure(t("chat.sendFailed"), error);
      return null;
    } finally {
      setBusy(false);
      void refreshConversations();
    }
  };

  const stop = async (): Promise<void> => {
    if (!id || busy) return;
    setBusy(true);
    await stopTurn(id).catch((error: unknown) => tellFailure(t("chat.stopFailed"), error));
    setBusy(false);
  };

  return { busy, begin, stop };
}

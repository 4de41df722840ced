// What is being written and what was chosen for the next message, for each conversation; it stays
// while another page is looked at.
import type { ProvidersView } from "../api/schema";
import { createStore, useStore } from "../api/store";
import type { LiveConversation } from "./conversation";

/** What was chosen but not sent yet; what is missing is as the conversation has it. */
export type Choice = { provider?: string; model?: string; servers?: string[] | null; toolsOff?: string[] };

export type Draft = { text: string; choice: Choice };

/** A conversation that has no id yet. */
export const NEW = "new";

const EMPTY: Draft = { text: "", choice: {} };
/** More unsent messages than this nobody comes back to. */
const MAX_DRAFTS = 50;
const drafts = createStore<ReadonlyMap<string, Draft>>(new Map());

export function useDraft(key: string): Draft {
  return useStore(drafts).get(key) ?? EMPTY;
}

export function changeDraft(key: string, change: Partial<Draft>): void {
  drafts.set((all) => {
    const kept = all.size < MAX_DRAFTS || all.has(key) ? all : [...all].slice(1);
    return new Map(kept).set(key, { ...(all.get(key) ?? EMPTY), ...change });
  });
}

/** What the next message is sent with. */
export type Chosen = { provider: string | null; model: string | null; servers: string[] | null; toolsOff: string[] };

/** The choice made here, else what the conversation keeps, else the default. */
export function chosen(
  choice: Choice,
  conversation: LiveConversation | null,
  providers: ProvidersView | undefined,
): Chosen {
  const known = (id: string | null | undefined) => providers?.providers.some((provider) => provider.id === id);
  const kept = known(conversation?.provider) ? conversation : null;
  const provider = choice.provider ?? kept?.provider ?? providers?.default?.provider ?? null;
  const model =
    choice.model ??
    (kept?.provider === provider ? kept?.model : undefined) ??
    (providers?.default?.provider === provider ? providers?.default?.model : undefined) ??
    providers?.providers.find(({ id }) => id === provider)?.default_model ??
    null;
  const servers = choice.servers === undefined ? (conversation?.servers ?? null) : choice.servers;
  return { provider, model, servers, toolsOff: choice.toolsOff ?? conversation?.tools_off ?? [] };
}

// Whether the daemon is there, as the event stream sees it.
import { createStore, useStore } from "./store";

export type Connection = "connecting" | "live" | "away" | "unauthorized";

export const connection = createStore<Connection>("connecting");

export function useConnection(): Connection {
  return useStore(connection);
}

/** Whether what is on the page may be old, and nothing can be changed. */
export function useAway(): boolean {
  return useStore(connection) === "away";
}

// What a server used over the last minutes. The daemon tells what is; the page remembers what was,
// for as long as it is open.
import { useEffect } from "react";
import type { ServerView, Usage } from "../../api/schema";
import { createStore, useStore } from "../../api/store";

export type Sample = { at: number; usage: Usage };

/** Ten minutes at one sample in five seconds. */
const MAX_SAMPLES = 120;
const MIN_GAP_MS = 1000;

const history = createStore<ReadonlyMap<string, readonly Sample[]>>(new Map());

/** The samples with one more; too soon after the last one it is left out. */
export function withSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  const last = samples.at(-1);
  if (last && sample.at - last.at < MIN_GAP_MS) return samples;
  return [...samples, sample].slice(-MAX_SAMPLES);
}

/** Takes a sample whenever the server was measured anew. */
export function useSample(server: ServerView): void {
  const { id, usage, pid } = server;
  useEffect(() => {
    if (!usage) return;
    const samples = history.get().get(id) ?? [];
    const next = withSample(samples, { at: Date.now(), usage });
    if (next !== samples) history.set((all) => new Map(all).set(id, next));
  }, [id, usage]);
  // Another process is another story.
  useEffect(() => {
    if (pid) return () => history.set((all) => new Map(all).set(id, []));
    return undefined;
  }, [id, pid]);
}

export function useHistory(id: string): readonly Sample[] {
  return useStore(history).get(id) ?? NONE;
}

const NONE: readonly Sample[] = [];

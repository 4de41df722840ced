// What the Environments page reads and does. Environments are made by other processes, of which
// the daemon hears nothing before it is asked: no event can tell of them. So the list is asked for
// again and again, but only while the page is the one that is looked at.
import { queryOptions, useMutation } from "@tanstack/react-query";
import { request } from "../api/client";
import { queryClient } from "../api/queries";
import type {
  EnvironmentDestroyed,
  EnvironmentDiff,
  EnvironmentList,
  EnvironmentLog,
  EnvironmentView,
  HostView,
  SecretDecision,
  SecretList,
} from "../api/schema";

/** An environment and where it is: two repositories may have the same id. */
export type Place = { repository: string; environment: EnvironmentView };

export const environmentsQuery = queryOptions({
  queryKey: ["environments"],
  queryFn: async ({ signal }) => (await request<EnvironmentList>("/environments", { signal })).repositories,
  refetchInterval: 5_000,
  refetchIntervalInBackground: false,
});

/** Programs are asked for their versions, which takes a moment. */
export const hostQuery = queryOptions({
  queryKey: ["host"],
  queryFn: ({ signal }) => request<HostView>("/host", { signal }),
  staleTime: 60_000,
});

const pathOf = ({ repository, environment }: Place, what = "", more = "") =>
  `/environments/${encodeURIComponent(environment.id)}${what}?repository=${encodeURIComponent(repository)}${more}`;

const keyOf = (what: string, { repository, environment }: Place) => ["environment", what, repository, environment.id];

export const logQuery = (place: Place) =>
  queryOptions({
    queryKey: keyOf("log", place),
    queryFn: ({ signal }) => request<EnvironmentLog>(pathOf(place, "/log"), { signal }),
    refetchInterval: 10_000,
    refetchIntervalInBackground: false,
  });

export const diffQuery = (place: Place) =>
  queryOptions({
    queryKey: keyOf("diff", place),
    queryFn: ({ signal }) => request<EnvironmentDiff>(pathOf(place, "/diff"), { signal }),
    refetchOnWindowFocus: false,
  });

export function useDestroy() {
  return useMutation({
    mutationFn: ({ place, force }: { place: Place; force: boolean }) =>
      request<EnvironmentDestroyed>(pathOf(place, "", force ? "&force=true" : ""), { method: "DELETE" }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["environments"] }),
  });
}

/** Approves or revokes a secret that a repository asks for. */
export function useDecideSecret() {
  return useMutation({
    mutationFn: (decision: SecretDecision) =>
      request<SecretList>("/repositories/secrets", { method: "POST", body: decision }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["environments"] }),
  });
}

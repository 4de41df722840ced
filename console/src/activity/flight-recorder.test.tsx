import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries";
import { FlightRecorder } from "./flight-recorder";

const STAGES = { queue_ms: 1, write_ms: 2, server_ms: 30, read_ms: 4 };

function record(stages: object) {
  const text = { text: "{}", bytes: 2, truncated: false, redacted: false };
  vi.stubGlobal("fetch", async () => Response.json({ stages, request: text, response: text, stderr: [] }));
  queryClient.clear();
  render(
    <QueryClientProvider client={queryClient}>
      <FlightRecorder callId="1" />
    </QueryClientProvider>,
  );
}
afterEach(() => vi.unstubAllGlobals());

test("time that the server waited for the user is a stage of its own", async () => {
  record({ ...STAGES, input_ms: 5000 });
  expect((await screen.findByText("User input")).nextElementSibling?.textContent).toBe("5,000 ms");
  expect(screen.getByText("Server").nextElementSibling?.textContent).toBe("30 ms");
});

test("a call that waited for others has its place in the queue", async () => {
  record({ ...STAGES, queue_ms: 700, queue_ahead: 2 });
  expect((await screen.findByText("Waiting")).nextElementSibling?.textContent).toBe("700 ms (behind 2)");
});

test("a call that asked for nothing has the four stages", async () => {
  record(STAGES);
  await screen.findByText("Server");
  expect(screen.queryByText("User input")).toBeNull();
});

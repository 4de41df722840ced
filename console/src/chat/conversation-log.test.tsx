import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { conversation, question } from "../test/chat";
import { begin } from "./conversation";
import { ConversationLog } from "./conversation-log";

afterEach(() => vi.unstubAllGlobals());

/** The log as a box of 200 whose content and place the test sets, and a way to let it grow. */
function log() {
  let grown = () => {};
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(callback: () => void) {
        grown = callback;
      }
      observe() {}
      disconnect() {}
    },
  );
  const goOn = { disabled: false, onContinue: () => {}, onAnswerNow: () => {} };
  const shown = begin(conversation({ messages: [question("u")] }));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <ConversationLog conversation={shown} sent={0} goOn={goOn} onEarlier={() => Promise.resolve()} />
    </QueryClientProvider>,
  );
  const box = screen.getByRole("log", { name: "Conversation" });
  const place = { scrollTop: 0, scrollHeight: 200, clientHeight: 200 };
  for (const key of Object.keys(place) as (keyof typeof place)[])
    Object.defineProperty(box, key, { get: () => place[key], configurable: true });
  box.scrollTo = (() => void (place.scrollTop = place.scrollHeight - place.clientHeight)) as typeof box.scrollTo;
  const grow = (height: number) => {
    place.scrollHeight = height;
    act(grown);
  };
  return { place, grow, scrolled: () => fireEvent.scroll(box) };
}

test("what comes while the page scrolls by itself does not stop it", () => {
  const { place, grow, scrolled } = log();
  grow(500);
  expect(place.scrollTop).toBe(300);
  // The event of that scrolling comes when there is more already.
  place.scrollHeight = 900;
  scrolled();
  grow(1000);
  expect(place.scrollTop).toBe(800);
});

test("who scrolls up stays there until they go to the end", () => {
  const { place, grow, scrolled } = log();
  grow(1000);
  scrolled();
  place.scrollTop = 500;
  scrolled();
  grow(1200);
  expect(place.scrollTop).toBe(500);
  fireEvent.click(screen.getByRole("button", { name: "Jump to the end" }));
  grow(1400);
  expect(place.scrollTop).toBe(1200);
});

import { fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type ComponentProps, useState } from "react";
import { expect, test, vi } from "vitest";
import { Composer } from "./composer";

type Props = Partial<ComponentProps<typeof Composer>>;

function Writer(props: Props) {
  const [text, setText] = useState("");
  return (
    <Composer
      text={text}
      onText={setText}
      onSend={() => {}}
      onStop={() => {}}
      running={false}
      busy={false}
      disabled={false}
      handle={null}
      {...props}
    >
      {null}
    </Composer>
  );
}

const field = () => screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Message" });

test("Enter sends, Shift+Enter is a new line, nothing is not sent", async () => {
  const onSend = vi.fn();
  render(<Writer onSend={onSend} />);
  await userEvent.type(field(), "  {Enter}");
  expect(onSend).not.toHaveBeenCalled();
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Send" }).disabled).toBe(true);
  await userEvent.type(field(), "one{Shift>}{Enter}{/Shift}two");
  expect(field().value).toBe("  one\ntwo");
  expect(onSend).not.toHaveBeenCalled();
  await userEvent.type(field(), "{Enter}");
  expect(onSend).toHaveBeenCalledTimes(1);
  await userEvent.click(screen.getByRole("button", { name: "Send" }));
  expect(onSend).toHaveBeenCalledTimes(2);
});

test("Enter that ends a composition does not send", () => {
  const onSend = vi.fn();
  render(<Writer onSend={onSend} />);
  fireEvent.change(field(), { target: { value: "日本語" } });
  fireEvent.keyDown(field(), { key: "Enter", isComposing: true });
  fireEvent.keyDown(field(), { key: "Enter", keyCode: 229 });
  expect(onSend).not.toHaveBeenCalled();
  fireEvent.keyDown(field(), { key: "Enter", keyCode: 13 });
  expect(onSend).toHaveBeenCalledTimes(1);
});

test("while a turn runs it can be stopped, and the next message be written", async () => {
  const onSend = vi.fn();
  const onStop = vi.fn();
  render(<Writer running onSend={onSend} onStop={onStop} />);
  await userEvent.type(field(), "next{Enter}");
  expect(field().value).toBe("next");
  expect(onSend).not.toHaveBeenCalled();
  expect(screen.queryByRole("button", { name: "Send" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Stop" }));
  expect(onStop).toHaveBeenCalledTimes(1);
});

// The ON/OFF switch. It shows what is wanted; `busy` says that it is not true yet.

type Props = { label: string; checked: boolean; busy?: boolean; disabled?: boolean; onChange: (on: boolean) => void };

export function Switch({ label, checked, busy = false, disabled = false, onChange }: Props) {
  return (
    <button
      type="button"
      role="switch"
      aria-label={label}
      aria-checked={checked}
      aria-busy={busy}
      disabled={disabled}
      onClick={() => onChange(!checked)}
      className={`relative inline-flex h-5 w-9 flex-none items-center rounded-full border transition-colors before:absolute before:-inset-3 before:content-[''] disabled:cursor-not-allowed ${checked ? "border-accent-fill bg-accent-fill" : "border-edge bg-sunken"}`}
    >
      <span
        aria-hidden
        className={`size-3.5 rounded-full transition-transform ${checked ? "translate-x-[1.125rem] bg-white" : "translate-x-0.5 bg-edge"} ${busy ? "animate-pulse" : ""}`}
      />
    </button>
  );
}

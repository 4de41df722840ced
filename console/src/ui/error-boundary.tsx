// Keeps the rest of the console alive where a page breaks, and says what happened.
import { Component, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Alert } from "./alert";

export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    return this.state.error ? <Crash error={this.state.error} /> : this.props.children;
  }
}

function Crash({ error }: { error: Error }) {
  const { t } = useTranslation();
  return (
    <Alert title={t("app.crashed")}>
      <p>{t("app.crashedHint")}</p>
      <pre className="code-block mt-2">{error.message}</pre>
      <button type="button" className="btn mt-2" onClick={() => window.location.reload()}>
        {t("app.reload")}
      </button>
    </Alert>
  );
}

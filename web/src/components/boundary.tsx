import { Component, type ReactNode } from "react";

/** What cannot be drawn says so, and takes nothing else of the page along. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="trouble" role="alert">
        <strong>This could not be shown.</strong>
        <span>{error.message}. The daemon may be of another version than this page.</span>
        <button type="button" onClick={() => location.reload()}>Load the page again</button>
      </div>
    );
  }
}

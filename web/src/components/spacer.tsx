/** Room for rows that are not drawn. Its height is an attribute: the page has no style attributes. */
export function Spacer({ height }: { height: number }) {
  return <svg className="spacer" width="1" height={Math.max(height, 0)} aria-hidden="true" />;
}

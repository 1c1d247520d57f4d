/** Types of what the page uses of preact; for the type checker alone, never served. */
export type Node = unknown;
export function h(type: unknown, props: unknown, ...children: unknown[]): Node;
export function render(node: unknown, place: Element | null): void;
export const Fragment: unknown;

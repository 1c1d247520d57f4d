/** Types of what the page uses of preact's hooks; for the type checker alone, never served. */
type Set<T> = (next: T | ((before: T) => T)) => void;
export function useState(first: null): [any, Set<any>];
export function useState(first: never[]): [any[], Set<any[]>];
export function useState<T>(first: T | (() => T)): [T, Set<T>];
export function useEffect(act: () => void | undefined | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(act: () => void | undefined | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(act: () => void | undefined | (() => void), inputs?: unknown[]): void;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useRef(first: null): { current: any };
export function useRef<T>(first: T): { current: T };

/** Types of what the page uses of htm; for the type checker alone, never served. */
declare const htm: { bind(make: unknown): (text: TemplateStringsArray, ...values: unknown[]) => any };
export default htm;

export function normals() { throw new Error("todo"); }

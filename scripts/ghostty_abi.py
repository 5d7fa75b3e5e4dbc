"""Writes synapsed/terminal/ghostty_abi.py: of libghostty-vt's C API what `synapsed.terminal` calls.

    python -m scripts.ghostty_abi

The declarations are compiled here, because cffi takes a tenth of a second to parse them and a process that draws
screens is to begin quickly. No C compiler is needed. Constants are not declared: the library tells them.
"""

from pathlib import Path

from cffi import FFI

TARGET = Path(__file__).resolve().parents[1] / "synapsed" / "terminal" / "ghostty_abi.py"
MODULE = "synapsed.terminal.ghostty_abi"

DOCSTRING = '"""The declarations of the used functions of libghostty-vt, compiled by `scripts.ghostty_abi`."""\n\n'

DECLARATIONS = """
typedef struct TerminalImpl* GhosttyTerminal;
typedef struct RenderStateImpl* GhosttyRenderState;
typedef struct RowIteratorImpl* GhosttyRenderStateRowIterator;
typedef struct RowCellsImpl* GhosttyRenderStateRowCells;
typedef struct FormatterImpl* GhosttyFormatter;

typedef struct { const uint8_t* ptr; size_t len; } GhosttyString;
typedef struct { uint8_t* ptr; size_t cap; size_t len; } GhosttyBuffer;
typedef struct { uint8_t r; uint8_t g; uint8_t b; } GhosttyColorRgb;
typedef struct { uint16_t mode; bool value; } GhosttyTerminalModeConfig;

typedef struct { const uint64_t* ptr; size_t len; } GhosttyCellsView;
typedef struct { uint64_t bits[2]; } GhosttyRenderStateRowId;

typedef union { uint8_t palette; GhosttyColorRgb rgb; uint64_t _padding; } GhosttyStyleColorValue;
typedef struct { int tag; GhosttyStyleColorValue value; } GhosttyStyleColor;
typedef struct {
  size_t size;
  GhosttyStyleColor fg_color;
  GhosttyStyleColor bg_color;
  GhosttyStyleColor underline_color;
  bool bold;
  bool italic;
  bool faint;
  bool blink;
  bool inverse;
  bool invisible;
  bool strikethrough;
  bool overline;
  int underline;
} GhosttyStyle;

typedef struct {
  size_t size;
  GhosttyColorRgb background;
  GhosttyColorRgb foreground;
  GhosttyColorRgb cursor;
  bool cursor_has_value;
  GhosttyColorRgb palette[256];
} GhosttyRenderStateColors;
typedef struct {
  size_t size;
  bool viewport_has_value;
  uint16_t viewport_x;
  uint16_t viewport_y;
  bool wide_tail;
  bool visible;
  bool blinking;
  bool password_input;
  int visual_style;
} GhosttyRenderStateCursor;

/* A point has a union, which cannot be passed by value: this is laid out and passed as it is. */
typedef struct { uint16_t x; uint32_t y; uint64_t _padding; } PointValue;
typedef struct { int tag; PointValue value; } Point;
typedef struct { size_t size; void* node; uint16_t x; uint16_t y; } GhosttyGridRef;
typedef struct { size_t size; GhosttyGridRef start; GhosttyGridRef end; bool rectangle; } GhosttySelection;

typedef struct {
  size_t size;
  bool cursor;
  bool style;
  bool hyperlink;
  bool protection;
  bool kitty_keyboard;
  bool charsets;
} GhosttyFormatterScreenExtra;
typedef struct {
  size_t size;
  bool palette;
  bool modes;
  bool scrolling_region;
  bool tabstops;
  bool pwd;
  bool keyboard;
  GhosttyFormatterScreenExtra screen;
} GhosttyFormatterTerminalExtra;
typedef struct {
  size_t size;
  int emit;
  bool unwrap;
  bool trim;
  GhosttyFormatterTerminalExtra extra;
  const GhosttySelection* selection;
} GhosttyFormatterTerminalOptions;
typedef struct {
  size_t size;
  int emit;
  bool unwrap;
  bool trim;
  const GhosttySelection* selection;
} GhosttyTerminalSelectionFormatOptions;

const char* ghostty_type_json(void);
void ghostty_free(const void* allocator, uint8_t* ptr, size_t len);

int ghostty_terminal_new(const void* allocator, GhosttyTerminal* terminal, uint16_t cols, uint16_t rows);
void ghostty_terminal_free(GhosttyTerminal terminal);
int ghostty_terminal_resize(GhosttyTerminal, uint16_t cols, uint16_t rows, uint32_t cell_width, uint32_t cell_height);
int ghostty_terminal_set(GhosttyTerminal terminal, int option, const void* value);
int ghostty_terminal_get(GhosttyTerminal terminal, int data, void* out);
int ghostty_terminal_get_multi(GhosttyTerminal, size_t count, const int* keys, void** values, size_t* out_written);
void ghostty_terminal_vt_write(GhosttyTerminal terminal, const uint8_t* data, size_t len);
int ghostty_terminal_grid_ref(GhosttyTerminal terminal, Point point, GhosttyGridRef* out);
int ghostty_terminal_selection_format_alloc(
  GhosttyTerminal, const void* allocator, GhosttyTerminalSelectionFormatOptions, uint8_t** out, size_t* out_len);

int ghostty_cell_get(uint64_t cell, int data, void* out);
int ghostty_row_get(uint64_t row, int data, void* out);
void ghostty_style_default(GhosttyStyle* style);

int ghostty_render_state_new(const void* allocator, GhosttyRenderState* state);
void ghostty_render_state_free(GhosttyRenderState state);
int ghostty_render_state_update(GhosttyRenderState state, GhosttyTerminal terminal);
int ghostty_render_state_clean(GhosttyRenderState state);
int ghostty_render_state_get(GhosttyRenderState state, int data, void* out);
int ghostty_render_state_row_iterator_new(const void* allocator, GhosttyRenderStateRowIterator* iterator);
void ghostty_render_state_row_iterator_free(GhosttyRenderStateRowIterator iterator);
bool ghostty_render_state_row_iterator_next(GhosttyRenderStateRowIterator iterator);
bool ghostty_render_state_row_iterator_next_dirty(GhosttyRenderStateRowIterator iterator, uint16_t* out_y);
int ghostty_render_state_row_get(GhosttyRenderStateRowIterator iterator, int data, void* out);
int ghostty_render_state_row_get_multi(
  GhosttyRenderStateRowIterator iterator, size_t count, const int* keys, void** values, size_t* out_written);
int ghostty_render_state_row_cells_new(const void* allocator, GhosttyRenderStateRowCells* cells);
void ghostty_render_state_row_cells_free(GhosttyRenderStateRowCells cells);
int ghostty_render_state_row_cells_select(GhosttyRenderStateRowCells cells, uint16_t x);
int ghostty_render_state_row_cells_get(GhosttyRenderStateRowCells cells, int data, void* out);

int ghostty_formatter_terminal_new(
  const void* allocator, GhosttyFormatter* formatter, GhosttyTerminal terminal, GhosttyFormatterTerminalOptions);
int ghostty_formatter_format_alloc(GhosttyFormatter formatter, const void* allocator, uint8_t** out, size_t* out_len);
void ghostty_formatter_free(GhosttyFormatter formatter);
"""


def compiled(target: Path) -> None:
    """Write the compiled declarations into `target`."""
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    ffi.set_source(MODULE, None)
    ffi.emit_python_code(str(target))
    target.write_text(DOCSTRING + target.read_text())


if __name__ == "__main__":
    compiled(TARGET)

"""What is counted: every fault that was injected, and what it cost."""

from dataclasses import dataclass, field

__all__ = ["Ledger", "Row"]


@dataclass
class Row:
    """One fault. `bytes` were compared with what the programs say that they printed; `tasks` with their receipts."""

    number: str
    name: str
    injected: int = 0
    bytes: int = 0
    bytes_lost: int = 0
    tasks: int = 0
    tasks_lost: int = 0
    tasks_doubled: int = 0
    left_over: int = 0
    figures: dict[str, str] = field(default_factory=dict)
    """Measured beside it."""

    @property
    def clean(self) -> bool:
        return not (self.bytes_lost or self.tasks_lost or self.tasks_doubled or self.left_over)


@dataclass
class Ledger:
    rows: list[Row] = field(default_factory=list)

    def open(self, number: str, name: str) -> Row:
        row = Row(number, name)
        self.rows.append(row)
        return row

    def lines(self) -> list[str]:
        """The table at the end of a run."""
        head = f"{'':4}{'fault':58}{'times':>6}{'MB':>8}{'lost':>6}{'tasks':>7}{'lost':>6}{'twice':>6}{'left over':>11}"
        out = [head]
        for row in sorted(self.rows, key=lambda row: (int(row.number.rstrip("abcdef")), row.number)):
            out.append(
                f"{row.number:4}{row.name:58}{row.injected:6}{row.bytes / 1e6:8.1f}{row.bytes_lost:6}{row.tasks:7}"
                f"{row.tasks_lost:6}{row.tasks_doubled:6}{row.left_over:11}"
            )
            out += [f"{'':8}{name}: {value}" for name, value in row.figures.items()]
        total = Row("", "in all")
        for row in self.rows:
            for name in ("injected", "bytes", "bytes_lost", "tasks", "tasks_lost", "tasks_doubled", "left_over"):
                setattr(total, name, getattr(total, name) + getattr(row, name))
        out.append(
            f"{'':4}{total.name:58}{total.injected:6}{total.bytes / 1e6:8.1f}{total.bytes_lost:6}{total.tasks:7}"
            f"{total.tasks_lost:6}{total.tasks_doubled:6}{total.left_over:11}"
        )
        return out

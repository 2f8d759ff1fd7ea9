"""How a command ended."""


class Done:
    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def __str__(self):
        return f"$ {' '.join(self.command)}\nexit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"

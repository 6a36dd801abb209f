package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The command {@code find}, which shows the records of one ID. */
@Command(
        name = "find",
        sortOptions = false,
        description = "Shows the records of an ID: of its request, of Idempotence.execute and of saveIfAbsent.")
final class FindCommand extends OperatorCommand {
    @Mixin
    private final RecordOptions record = new RecordOptions();

    @Override
    Optional<String> namespaceOfKey() {
        return record.namespaceOfKey();
    }

    @Override
    void check() {
        record.check();
    }

    @Override
    int run(IdempotenceAdmin admin, Output output) {
        if (record.isKey()) {
            admin.find(record.key(admin)).ifPresent(found -> output.row("", found));
        } else {
            record.keys(admin)
                    .forEach((kind, key) -> admin.find(key).ifPresent(found -> output.row(kind.name(), found)));
        }
        output.endOfRows();
        if (output.rows() == 0) {
            err().println("no record: " + record.hint());
            return OperatorTool.NOT_DONE;
        }
        return OperatorTool.OK;
    }
}

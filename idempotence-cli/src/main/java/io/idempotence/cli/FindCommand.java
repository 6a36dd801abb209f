package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import java.util.ArrayList;
import java.util.List;
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
        List<String> unreadable = new ArrayList<>();
        if (record.isKey()) {
            admin.find(record.key(admin)).ifPresent(found -> output.row("", found));
        } else {
            record.keys(admin).forEach((kind, key) -> {
                try {
                    admin.find(key).ifPresent(found -> output.row(kind.name(), found));
                } catch (CorruptRecordException e) {
                    unreadable.add(kind.name());
                    err().println(kind.name() + ": " + e.getMessage());
                }
            });
        }
        output.endOfRows();
        if (!unreadable.isEmpty()) {
            return OperatorTool.NOT_DONE;
        }
        if (output.rows() == 0) {
            err().println("no record: " + record.hint());
            return OperatorTool.NOT_DONE;
        }
        return OperatorTool.OK;
    }
}

package io.idempotence.it.architecture;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;

/** The types that users get: the classes of the library modules and of the starter, without anybody's tests. */
final class ProductTypes implements ImportOption {
    private final ImportOption noTestFolders = Predefined.DO_NOT_INCLUDE_TESTS;

    @Override
    public boolean includes(Location location) {
        return noTestFolders.includes(location) && !location.contains("-tests.jar");
    }
}

package io.idempotence.it.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** Packages that are public to the compiler but not to users. The tests of this module count as users, so they are checked, too. */
@AnalyzeClasses(packages = "io.idempotence")
class InternalsTest {
    /** The client half of RestClient, beside those of Feign and OkHttp, which are in the client's own module. */
    private static final String RESTCLIENT_HALF = "io.idempotence.spring.client..";

    @ArchTest
    static final ArchRule whatTheModulesShareIsUsedByThemOnly = noClasses()
            .that()
            .resideOutsideOfPackages(
                    "io.idempotence",
                    "io.idempotence.internal..",
                    "io.idempotence.client..",
                    "io.idempotence.server..",
                    "io.idempotence.spring..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.idempotence.internal..");

    @ArchTest
    static final ArchRule retryMachineryIsUsedByClientsOnly = noClasses()
            .that()
            .resideOutsideOfPackages("io.idempotence.client..", RESTCLIENT_HALF)
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.idempotence.client.internal..");
}
